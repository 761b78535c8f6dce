"""Look beyond the horizon: follow a plan only if the task can go on behind it.

K steps are too few to see a fall coming: a hop that took off wrong ends a hundred steps later, whatever is done in
between, and a learned cost of states does not tell. A proposal policy π can be asked: executed behind the plan,
through the simulator, it goes on or it falls.

    x_0 … x_K by the plan,  x_{k+1} = f(x_k, π(x_k)) for L steps more

If the task is lost on the way, others are tried: what the proposal would do from here, the rest of what was
followed last, the cheapest of the sampled sequences. The first that lasts is followed, or else the one that lasts
longest. Without noise the rest of what lasted lasts as long, but for one step, so no plan is worse than the one
before. No reward enters: the simulator says where a task ends. It is meant for tasks that end only where they are
lost, by a fall.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators import Policy, Simulator, State, lasts

OTHERS = 10
"""How many of the sampled sequences are tried at most."""


@dataclass(frozen=True)
class Beyond:
    """The look behind plans."""

    simulator: Simulator
    proposal: Policy
    steps: int
    """K + L: how long a plan and the proposal behind it are to last."""

    def choose(self, state: State, plans: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Return the first of the plans (≤ K, m) with which the task lasts, or the one that lasts longest."""
        longest = -1
        for plan in plans:
            lasted = lasts(self.simulator, state, plan, self.proposal, self.steps)
            if lasted > longest:
                best, longest = plan, lasted
            if lasted == self.steps:
                break
        return best


def cheapest(V: NDArray[Any], S: NDArray[Any]) -> NDArray[Any]:
    """Return a few of the sequences V (M, K, m), by their cost S (M,)."""
    return np.asarray(V[np.argsort(S)[:OTHERS]])
