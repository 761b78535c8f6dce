"""The policy that guides a planner's samples: a clone of the demonstrator and, later, of the planner itself.

Demonstrations hold states only. Where the simulator can be put into them, it tells which controls lead from each to
the next (`rhirl.learning.explain`); behaviour cloning makes a policy of those, and what it cannot predict tells how
noisy the demonstrator's controls were. A quiet one is cloned once: nothing a planner does is as good. Under noise a
clone lacks what no demonstration shows, how to come back. The planner does come back, so there every so often the
policy is cloned anew, from the demonstrations and from what the planner did where the learner has been; and once
the cost is learned, the policy may come back by itself, if it rehearses (`rehearsal.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.baselines import BC, BCConfig
from rhirl.demos import Demonstrations
from rhirl.learning import Explained, Proposal, explain
from rhirl.rl import Actor, Policy, to_numpy
from rhirl.simulators import InvertibleSimulator, Simulator

TRUSTED = 1e-2
"""Largest residual of a transition the clone learns from: a tenth of a deviation off, all coordinates together."""
QUIET = 0.15
"""Deviation of the controls from their clone below which a demonstrator is quiet; its noise σ, if there is any."""
INSIDE = 0.3
"""Largest control around which noise is measured."""
CLONES = {
    "small": BCConfig(hidden=(64, 64), patience=100),
    "large": BCConfig(hidden=(256, 256), batch=256, weight_decay=1e-5, patience=100),
}
"""Of a noisy demonstrator the large clone is the better guide, of a quiet one the small, but for Ant."""
ASKING = "asking the simulator what the demonstrator did"
Note = Callable[[str], None]


class Practice(NamedTuple):
    """What an apprentice knows, as arrays, so that a run goes on bit for bit."""

    actor: Actor
    noise: NDArray[np.float32]
    """(m,) deviation of the demonstrator's controls from their clone, which is the noise it acted under."""
    x: NDArray[np.float32]
    """(S, n) observations of the learner's own episodes; those not yet made are zero."""
    u: NDArray[np.float32]
    """(S, m) what the planner chose there."""


class Apprentice:
    """A proposal that is cloned again and again, if the demonstrator was noisy.

    Args:
        demos: Demonstrated observations.
        explained: The controls that explain them.
        size: How many of the planner's controls it will watch at most.
        seed: Of the cloning.
        clone: Which of `CLONES` is made of a quiet demonstrator. It also tells whether one is.
    """

    def __init__(
        self, demos: Demonstrations, explained: Explained, size: int, seed: int = 0, clone: str = "small"
    ) -> None:
        self._demos = replace(demos, controls=explained.controls)
        self._trusted = explained.residuals < TRUSTED
        self._seed, self._first = seed, CLONES[clone]
        m = explained.controls.shape[-1]
        x, u = (np.zeros((size, *shape), np.float32) for shape in (demos.observation_shape, (m,)))
        self.state = Practice(self._clone(self._first).policy().actor, np.zeros(m, np.float32), x, u)

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Propose a control (m,) for an observation (n,)."""
        return np.asarray(self.policy().act(x), np.float32)

    def watch(self, done: int, x: NDArray[Any], u: NDArray[Any]) -> None:
        """Remember what the planner chose, u (B, m) at x (B, n), after `done` such pairs."""
        self.state.x[done : done + len(x)], self.state.u[done : done + len(u)] = x, u

    def learn(self) -> None:
        """Clone the demonstrations, and see how noisy they are."""
        first = self._clone(self._first).learn()
        self.state = self.state._replace(actor=first.policy().actor, noise=first.deviation)
        self.relearn(0)

    @property
    def quiet(self) -> bool:
        """Whether the demonstrator's controls are the clone's, but for what it has not learned."""
        return bool(self.state.noise.mean() < QUIET)

    def pairs(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the demonstrated observations (S, n) and controls (S, m) that a clone learns from."""
        assert self._demos.controls is not None
        there = self._trusted & (np.arange(self._demos.horizon) < self._demos.lengths[:, None])
        return self._demos.observations[:, :-1][there], self._demos.controls[there]

    def demonstrated_noise(self) -> NDArray[np.float64]:
        """Return the deviation (m,) of the noise the demonstrator acted under: the larger of two estimates.

        Both look where the proposal's control lies well inside the box, out of which noise is clipped. The median
        is touched least by that: half of a Gaussian lies within 0.6745 deviations. But it is too little where small
        controls do nothing, as a lander's side engines, and where the clone has learned some of the noise by heart;
        the root mean square is not.
        """
        x, v = self.pairs()
        u = self(x)
        missed = np.where(np.abs(u) < INSIDE, np.abs(v - u), np.nan)
        return np.asarray(np.fmax(np.nanmedian(missed, axis=0) / 0.6745, np.sqrt(np.nanmean(missed**2, axis=0))))

    def relearn(self, done: int) -> None:
        """Under noise, clone anew from the demonstrations and the first `done` pairs watched."""
        if self.quiet:
            return
        watched = None if done == 0 else (self.state.x[:done], self.state.u[:done])
        self.state = self.state._replace(actor=self._clone(CLONES["large"], watched, done).learn().policy().actor)

    def adopt(self, actor: Actor) -> None:
        """Propose what another policy does."""
        self.state = self.state._replace(actor=to_numpy(actor))

    def restore(self, state: Practice) -> None:
        """Go on from a state as it was."""
        noise, x, u = (np.array(part) for part in state[1:])
        self.state = Practice(to_numpy(state.actor), noise, x, u)

    def policy(self, **metadata: str) -> Policy:
        """Return the policy as it is now."""
        return Policy(self.state.actor, metadata)

    def _clone(
        self, config: BCConfig, watched: tuple[NDArray[Any], NDArray[Any]] | None = None, done: int = 0
    ) -> BC:
        return BC(self._demos, config, seed=self._seed + done, trusted=self._trusted, watched=watched)


def explain_demos(simulator: Simulator, demos: Demonstrations, note: Note = lambda _: None) -> Explained:
    """Explain demonstrated states by controls, where the simulator can; `note` hears how far it is."""
    note(ASKING)
    return explain(invertible(simulator), demos, lambda done, of: note(explained(done, of)))


def explained(done: int, of: int) -> str:
    """Say how far explaining is."""
    return f"{done} of {of} demonstrations explained by controls"


def invertible(simulator: Simulator) -> InvertibleSimulator:
    """Return the simulator, if it can tell what a demonstrator did."""
    if isinstance(simulator, InvertibleSimulator):
        return simulator
    raise ValueError(
        f"{type(simulator).__name__} cannot tell what a demonstrator did: it has no state_from_observation. "
        "Give it one, or set planner.guided=0, deploy.guided=0 and beyond=0"
    )


def learn_proposal(
    simulator: Simulator, demos: Demonstrations, *, seed: int = 0, note: Note = lambda _: None
) -> Policy:
    """Explain the demonstrations and clone them: a proposal for `RHIRL` and `Controller`."""
    apprentice = Apprentice(demos, explain_demos(simulator, demos, note), 0, seed)
    apprentice.learn()
    return apprentice.policy()


def untrained_proposal(demos: Demonstrations, control_dim: int) -> Proposal:
    """Make a proposal that knows nothing, for timing: following it takes as long as following a good one."""
    shape = len(demos), demos.horizon
    return Apprentice(demos, Explained(np.zeros((*shape, control_dim), np.float32), np.zeros(shape)), 0)
