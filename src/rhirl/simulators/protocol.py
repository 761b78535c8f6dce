"""What the planner asks of a simulator, and nothing more.

RHIRL (and MPPI inside it) treats the dynamics x' = f(x, v) as a black box that can be put into a state and
rolled out. A simulator is therefore an object without memory: every method takes the state it starts from and
returns a new one, so that planning can never disturb the system it plans for.

Shapes: `M` sampled control sequences, horizon `K`, `m` controls, observations of shape `n` (a vector, or an
image `96 x 96 x 3`). Controls are in [-1, 1]; the simulator scales them to its own units and clips what lies
outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

# A pytree of NumPy arrays: whatever the engine needs to continue exactly. Checkpoints store it leaf by leaf, so
# it may hold arrays only.
State = Any
Policy = Callable[[NDArray[Any]], NDArray[Any]]
"""π: observation (n,) → control (m,) in [-1, 1]."""


class Rollout(NamedTuple):
    """What M control sequences of length K led to."""

    observations: NDArray[Any]
    """(M, K + 1, *n) float32, or uint8 for images; `[:, 0]` is the observation of the start state."""
    valid: NDArray[np.bool_]
    """(M,) False where the simulation diverged; the planner gives such a rollout infinite cost."""
    ended: NDArray[np.bool_] | None = None
    """(M,) True where the task is lost on the way (a fall, a crash); None where the simulator does not tell."""

    def usable(self, survive: bool) -> NDArray[np.bool_]:
        """(M,) Which rollouts are plans: the valid ones or, to survive, those that do not end, if there are any."""
        if not survive or self.ended is None:
            return self.valid
        alive = self.valid & ~self.ended
        return alive if alive.any() else self.valid


@runtime_checkable
class Simulator(Protocol):
    """A black-box system that can be put into any of its states.

    Determinism contract: the same arguments give the same bits, at any thread count. Randomness a simulator has
    of its own (process noise, engine dispersion) is drawn from `seed` alone.
    """

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation x."""
        ...

    @property
    def control_dim(self) -> int:
        """Number of controls m."""
        ...

    def reset(self, seed: int) -> State:
        """Draw an initial state x_0 ~ μ."""
        ...

    def observe(self, state: State) -> NDArray[Any]:
        """Return the observation of a state: (*n,)."""
        ...

    def step(self, state: State, control: NDArray[Any], seed: int = 0) -> State:
        """Execute one control v (m,) exactly as the real system would: x' = f(x, v)."""
        ...

    def terminated(self, state: State) -> bool:
        """Whether the real task would end here (a fall, a landing); never the time limit."""
        ...

    def rollout(self, state: State, controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Roll M control sequences V (M, K, m) out from one state."""
        ...


@runtime_checkable
class EnvironmentSimulator(Simulator, Protocol):
    """A simulator of a Gymnasium environment, which can read the state of the real one."""

    def snapshot(self, env: gymnasium.Env[Any, Any]) -> State:
        """Read the state of a running environment without touching it."""
        ...

    def restore(self, env: gymnasium.Env[Any, Any], state: State) -> None:
        """Put a running environment into a state."""
        ...


@runtime_checkable
class InvertibleSimulator(Simulator, Protocol):
    """A simulator that can be put where a demonstration was."""

    def state_from_observation(self, observation: NDArray[Any], near: State | None = None) -> State:
        """Return a state with this observation; what it does not tell is as in `near`, or else at rest."""
        ...


@runtime_checkable
class RandomSimulator(Simulator, Protocol):
    """A simulator with randomness of its own, which can do without."""

    def mean_step(self, state: State, control: NDArray[Any]) -> State:
        """Execute one control v (m,) with all that is random at its mean."""
        ...


@runtime_checkable
class FollowingSimulator(Simulator, Protocol):
    """A simulator that follows a policy by itself, faster than one is led through it step by step."""

    def follow(
        self, state: State, controls: NDArray[Any], policy: Policy, steps: int, *, lost_too: bool = False
    ) -> NDArray[Any]:
        """Execute controls (K, m), then a policy's, as `step` does.

        Returns the observations (steps + 1, *n) from the start on, or those before the task is lost; with
        `lost_too` those after as well, until the simulation diverges.
        """
        ...


@runtime_checkable
class LosingSimulator(Simulator, Protocol):
    """A simulator of a task that can end well, which tells such an end from the others."""

    def lost(self, state: State) -> bool:
        """Whether the task ends here because it is lost: by a crash, not by a landing."""
        ...


@runtime_checkable
class ApproximateSimulator(Simulator, Protocol):
    """A simulator whose rollouts take a cheaper model than its steps."""

    def exact(self) -> Simulator:
        """Return the same simulator with rollouts as exact as its steps."""
        ...


def exactly(simulator: Simulator) -> Simulator:
    """Return the simulator with rollouts as exact as they can be."""
    return simulator.exact() if isinstance(simulator, ApproximateSimulator) else simulator


def where_lost(simulator: Simulator) -> Callable[[State], bool]:
    """Return what tells whether the task is lost in a state; where nothing better is known, every end is a loss."""
    return simulator.lost if isinstance(simulator, LosingSimulator) else simulator.terminated


def expected_step(simulator: Simulator) -> Callable[[State, NDArray[Any]], State]:
    """Return the step to reason with: one that takes no single draw of the randomness for what always happens."""
    return simulator.mean_step if isinstance(simulator, RandomSimulator) else simulator.step
