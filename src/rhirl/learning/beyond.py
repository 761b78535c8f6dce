"""Look beyond the horizon: follow a plan only if the task can go on behind it.

K steps are too few to see a fall coming: a hop that took off wrong ends a hundred steps later, whatever is done in
between, and a learned cost of states does not tell. A proposal policy π can be asked: executed behind the plan,
through the simulator, it goes on or it falls.

    x_0 … x_K by the plan,  x_{k+1} = f(x_k, π(x_k)) for L steps more

If the task is lost on the way, others are tried: what the proposal would do from here, the rest of what was
followed last, the cheapest of the sampled sequences. The first that lasts is followed, or else the one that lasts
longest. Without noise the rest of what lasted lasts as long, but for one step, so no plan is worse than the one
before. No reward enters: the simulator says where a task is lost, by a fall or a crash.

Some tasks can be lost without an end: an ant on its back, or at rest, stays there for good. The learned cost tells.
With a penalty on g² the best g is

    g(x) ∝ (p_planner(x) − p_expert(x)) / (p_planner(x) + p_expert(x))

so where it is above zero in the mean over the last steps of a look, no expert goes: the plan has gone astray.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators import Policy, Simulator, State, follow

OTHERS = 10
"""How many of the sampled sequences are tried at most."""
LAST = 10
"""Over how many steps at its end a look is judged by the cost."""


@dataclass(frozen=True)
class Beyond:
    """The look behind plans."""

    simulator: Simulator
    proposal: Policy
    steps: int
    """K + L: how long a plan and the proposal behind it are to last."""
    mean_cost: Callable[[NDArray[Any]], Any] | None = None
    """Mean of g over observations (LAST, n), to tell who has gone astray; None where only the task's end counts."""

    def choose(self, state: State, plans: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Return the first of the plans (≤ K, m) with which all goes well, or else the best of them."""
        most = (-1, 0.0)
        for plan in plans:
            well = self.how_well(follow(self.simulator, state, plan, self.proposal, self.steps))
            if well > most:
                best, most = plan, well
            if well == (self.steps, 0.0):
                break
        return best

    def how_well(self, seen: NDArray[Any]) -> tuple[int, float]:
        """Return for how many steps the task lasts and, less than zero, how far astray it is in the end."""
        lasted = len(seen) - 1
        if self.mean_cost is None or lasted < self.steps:
            return lasted, 0.0
        return lasted, min(0.0, -float(self.mean_cost(seen[-LAST:])))


def cheapest(V: NDArray[Any], S: NDArray[Any]) -> NDArray[Any]:
    """Return a few of the sequences V (M, K, m), by their cost S (M,)."""
    return np.asarray(V[np.argsort(S)[:OTHERS]])
