"""Any Gymnasium MuJoCo environment as a simulator: put into a state, stepped, rolled out on all cores.

Model, frame skip, control range, observation rule and termination are read from the environment; Hopper, Walker2d,
Ant, HalfCheetah, Humanoid and the rest are served by the same lines. `step` and the default `rollout` give the
environment's own numbers bit for bit, at any thread count. A planner may roll out a cheaper or a different model
(`integrator`, `parameters`); `step` stays the scored physics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

try:
    import mujoco.batch
except ImportError as error:
    raise ImportError("MuJoCo 4 is not installed; run: pip install 'rhirl[mujoco]'") from error

from rhirl.simulators.checks import check_controls
from rhirl.simulators.following import step_by_step
from rhirl.simulators.leading import Led, blank, disturbances, in_lockstep
from rhirl.simulators.mujoco_ending import Limits, find_limits
from rhirl.simulators.mujoco_engine import OBSERVATION, Engine, Physics, bare_batch, make_engine, replan
from rhirl.simulators.mujoco_follow import Follower
from rhirl.simulators.mujoco_lead import lead_flock
from rhirl.simulators.mujoco_original import Original, State
from rhirl.simulators.mujoco_parameters import read_parameters
from rhirl.simulators.protocol import Policy, Rollout
from rhirl.simulators.threads import usable_cores

# Beyond this MuJoCo itself calls a number divergence, but only when the next step begins.
DIVERGED = mujoco.mjMAXVAL


class MujocoSimulator:
    """A Gymnasium MuJoCo environment behind the simulator protocol.

    One simulator belongs to one Python thread at a time; inside, it uses `threads` of its own.

    Args:
        env_id: The environment, as `gymnasium.make` knows it.
        env_kwargs: Keyword arguments of `gymnasium.make`.
        integrator: Integrator of the rollouts: "implicitfast" costs a quarter of the "RK4" of most environments.
            None is the environment's own.
        substeps: Substeps of the rollouts per environment step, whose length stays; None is the environment's own.
        parameters: Scale factors of the rollouts' model: "mass", "friction", "gravity" or a field of MjModel, each
            one number or P of them, of which simulation i takes number i mod P.
        process_noise: Standard deviation σ of Gaussian generalised forces (N or N m), drawn for every degree of
            freedom and environment step; a number or (nv,). It acts in `step` and in `rollout`.
        contact_forces: False leaves the contact forces out of the observation (27 of Ant's 105 entries stay).
        threads: How many threads roll out; None takes the cores this process may use.
        dtype: Type of the observations. float64 is the environment's own.
    """

    def __init__(
        self,
        env_id: str,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
        integrator: str | None = None,
        substeps: int | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        process_noise: ArrayLike = 0.0,
        contact_forces: bool = True,
        threads: int | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.threads = usable_cores() if threads is None else threads
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")

        self._original = original = Original(env_id, env_kwargs or {})
        self._layout, rule = original.layout, original.rule
        self._rule = rule if rule is None or contact_forces else rule.without("cfrc_ext")
        self._kept = np.arange(original.entries)
        if rule is not None and not contact_forces:
            self._kept = np.delete(self._kept, rule.entries("cfrc_ext"))

        fields = self._rule.fields if self._rule else (OBSERVATION,)
        self._exact = exact = Physics(original.model, original.frame_skip, fields)
        self._verify(self._engine(exact))
        self._planned = replan(exact, integrator, substeps, read_parameters(original.model, parameters or {}))
        self._planner = self._engine(self._planned)
        self._noise_std = _noise_std(process_noise, original.model.nv)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape (n,) of one observation."""
        return self._kept.shape

    @property
    def control_dim(self) -> int:
        """Number of controls m."""
        return self._original.control_dim

    def exact(self) -> MujocoSimulator:
        """Return the same simulator with rollouts on the environment's own model."""
        twin = copy(self)
        twin._planned = self._exact
        twin._planner = self._engine(self._exact)
        return twin

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """Make the environment that this simulates."""
        return self._original.make_env()

    def action(self, controls: NDArray[Any]) -> NDArray[Any]:
        """Scale controls in [-1, 1] to what the environment's own `step` takes, and clip what lies outside."""
        return self._original.action(controls)

    def reset(self, seed: int) -> State:
        """Draw the initial state that the environment's own `reset(seed=seed)` draws."""
        return self._original.reset(seed)

    def observe(self, state: State) -> NDArray[Any]:
        """Return the environment's observation (n,) of a state."""
        return self._observe(self._layout.check(state)).astype(self.dtype)

    def step(self, state: State, control: NDArray[Any], seed: int = 0) -> State:
        """Execute one control v (m,) as the environment would, whatever model the rollouts use."""
        x = self._layout.check(state)
        return self._advance(x, control, self._forces(x, seed, 1, 1))

    def mean_step(self, state: State, control: NDArray[Any]) -> State:
        """Execute one control v (m,) without process noise."""
        return self._advance(self._layout.check(state), control, None)

    def terminated(self, state: State) -> bool:
        """Whether the environment would end here: it is asked itself."""
        return self._original.terminated(self._layout.check(state))

    def rollout(self, state: State, controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Roll out V (M, K, m); an invalid rollout repeats the start observation, never a made-up number."""
        x = self._layout.check(state)
        V = check_controls(np.clip(controls, -1, 1), self.control_dim)
        nonsense = np.logical_or.reduce(np.isnan(V), axis=(1, 2))
        if nonsense.any():
            V[nonsense] = 0
        forces = self._forces(x, seed, *V.shape[:2])
        observations, valid = self._run(self._planner, x, self.action(V), forces, self.dtype)
        valid &= ~nonsense
        if not valid.all():
            observations[~valid] = observations[0, 0]
        if self._limits is None:
            return Rollout(observations, valid)
        return Rollout(observations, valid, np.logical_or.reduce(self._limits.ended(observations[:, 1:]), axis=1))

    def follow(
        self, state: State, controls: NDArray[Any], policy: Policy, steps: int, *, lost_too: bool = False
    ) -> NDArray[Any]:
        """Execute controls (K, m), then a policy's, as `step` does; return what is seen until the task is lost."""
        if self._follower is None:
            return step_by_step(self, state, controls, policy, steps, lost_too=lost_too)
        x = self._layout.check(state)
        seen, start = self._observe(x).astype(self.dtype), x[self._layout.integration]
        return self._follower.follow(start, seen, controls, policy, steps, self.action, lost_too)

    def lead(self, starts: Sequence[State], policy: Policy, noise: ArrayLike, steps: int, seed: int) -> Led:
        """Lead systems by a policy under control noise, as `step` does; see how long the task lasts in each."""
        if self._rule is None or self._limits is None or self._noise_std.any():
            return in_lockstep(self, starts, policy, noise, steps, seed)
        X, led = np.stack([self._layout.check(state) for state in starts]), blank(self, len(starts), steps)
        led.observations[:, 0] = [self._observe(x) for x in X]
        epsilon = disturbances(seed, steps, len(X), self.control_dim, noise)
        starting = X[:, self._layout.integration]
        return lead_flock(
            self._exact, self.threads, self._rule, self._limits, starting, led, policy, epsilon, self.action
        )

    def snapshot(self, env: gymnasium.Env[Any, Any]) -> State:
        """Read the state of a running environment without touching it."""
        return self._original.snapshot(env)

    def restore(self, env: gymnasium.Env[Any, Any], state: State) -> None:
        """Put a running environment into a state, from where its steps repeat, rewards included."""
        self._original.restore(env, state)

    def state_from_observation(self, observation: NDArray[Any], near: State | None = None) -> State:
        """Return a state with this observation (n,), standing at the origin.

        The dynamics do not feel the horizontal root position that observations leave out. Velocities that the
        environment clips are as in `near` if they lie beyond there too, else as observed. The contact solver starts
        cold.
        """
        x = np.asarray(observation, np.float64)
        name = self._original.env_id
        if x.shape != self.observation_shape or not np.isfinite(x).all():
            raise ValueError(f"an observation of {name} is {self.observation_shape[0]} finite numbers")
        if self._rule is None:
            raise ValueError(f"{name} computes its observation from the state: no state follows from it")
        return self._original.invert(self._rule, x, near)

    def bare_rollout(self, state: State, controls: NDArray[Any]) -> Callable[[], object]:
        """Prepare the same physics with the bare engine, `mujoco.batch`: what benchmarks compare with."""
        start = self._layout.check(state)[self._layout.integration]
        return bare_batch(self._planned, self.threads, start, self.action(controls))

    def _engine(self, physics: Physics) -> Engine:
        return make_engine(physics, self.threads, self._original.make if self._rule is None else None)

    def _advance(self, x: State, control: NDArray[Any], forces: NDArray[np.float64] | None) -> State:
        v = check_controls(np.clip(control, -1, 1)[None, None], self.control_dim)[0, 0]
        if np.isnan(v).any():
            raise ValueError(f"the control holds NaN: {v}")
        return self._original.advance(x, v, None if forces is None else forces[0, 0])

    def _observe(self, x: State) -> NDArray[np.float64]:
        if self._rule is None:
            return self._original.observe(x)
        observation = np.empty(self._rule.size)
        self._rule.assemble({name: x[self._layout[name]] for name in self._rule.fields}, observation)
        return observation

    def _run(
        self, engine: Engine, x: State, actions: NDArray[Any], forces: NDArray[np.float64] | None, dtype: DTypeLike
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return observations (M, K + 1, n) and which of the M rollouts are sound."""
        M, K, _ = actions.shape
        observations = np.empty((M, K + 1, *self.observation_shape), dtype)
        if M == 0:
            return observations, np.ones(0, np.bool_)
        observations[:, 0] = self._observe(x)
        values, diverged = engine.run(x[self._layout.integration], actions, forces)
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, and is masked below
            if self._rule is None:
                observations[:, 1:] = values[OBSERVATION]
            else:
                self._rule.assemble(values, observations[:, 1:])
        return observations, ~diverged & (np.abs(observations[:, -1]) < DIVERGED).all(axis=1)

    @cached_property
    def _limits(self) -> Limits | None:
        """Limits of the observation's entries; None where the task ends by a rule the observation does not show."""
        if self._rule is None:
            return None
        x, positions = self.reset(seed=0), self._layout["qpos"]
        start = x[positions].copy()

        def ends(q: NDArray[np.float64]) -> bool:
            x[positions] = q
            return self.terminated(x)

        limits = find_limits(ends, start)
        return None if limits is None else limits.observed(self._rule)

    @cached_property
    def _follower(self) -> Follower | None:
        """What follows a policy; None where the task's end is not seen in the observation."""
        if self._rule is None or self._limits is None:
            return None
        return Follower(self._exact, self._rule, self._limits)

    def _forces(self, x: State, seed: int, M: int, K: int) -> NDArray[np.float64] | None:
        """Draw the process noise as applied generalised forces (M, K, nv), on top of those already in the state."""
        if not self._noise_std.any():
            return None
        draw = np.random.default_rng(seed).standard_normal((M, K, self._noise_std.size))
        return x[self._layout["qfrc_applied"]] + self._noise_std * draw

    def _verify(self, engine: Engine) -> None:
        """Compare a few steps with the environment's own, so that a rule it hides from us is an error now."""
        state = self.reset(seed=0)
        V = np.random.default_rng(0).uniform(-1, 1, (2, 4, self.control_dim))
        observations, _ = self._run(engine, state, self.action(V), None, np.float64)
        for actions, simulated in zip(self.action(V), observations[:, 1:], strict=True):
            expected = self._original.observations(state, actions)
            if not np.array_equal(expected[:, self._kept], simulated):
                raise ValueError(
                    f"{self._original.env_id} does more between control and observation than MuJoCo's step: "
                    "its own step and the simulator disagree. Use GymSimulator, which runs the environment itself."
                )


def _noise_std(process_noise: ArrayLike, nv: int) -> NDArray[np.float64]:
    std = np.asarray(process_noise, np.float64)
    if std.shape not in ((), (nv,)) or not np.isfinite(std).all() or (std < 0).any():
        raise ValueError(
            f"process_noise must be one standard deviation ≥ 0, or {nv} of them, not {process_noise!r}"
        )
    return np.broadcast_to(std, nv)
