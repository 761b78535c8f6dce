"""Where a MuJoCo environment ends its task, found by asking the environment itself.

Hopper, Walker2d, Ant and Humanoid end when a position leaves its range (a height, a lean):

    ended  ⇔  q_i ≤ lower_i  or  q_i ≥ upper_i,   for some position i

Nothing states these limits as data. Each is found by moving one position away from a sound posture until the
environment ends there, and halving the interval. A rule of another form is noticed, and then there are no limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

REACH = 10.0  # metres or radians within which a limit is looked for
HALVINGS = 60  # from REACH down to neighbouring numbers
TRIALS = 200  # random postures the limits must agree on with the environment

Ends = Callable[[NDArray[np.float64]], bool]


class Limits(NamedTuple):
    """Open intervals of the positions q (nq,) within which the task goes on; infinite where nothing ends it."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    def ended(self, q: NDArray[np.float64]) -> bool:
        """Tell whether the task ends with positions q (nq,)."""
        return bool(((q <= self.lower) | (q >= self.upper)).any())


def find_limits(ends: Ends, start: NDArray[np.float64]) -> Limits | None:
    """Find the limits around positions `start` (nq,), where the task goes on; None if they are no intervals."""
    lower = np.array([-_limit(ends, start, i, -1.0) for i in range(len(start))])
    upper = np.array([_limit(ends, start, i, 1.0) for i in range(len(start))])
    limits, rng = Limits(lower, upper), np.random.default_rng(0)
    postures = start + rng.uniform(-1, 1, (TRIALS, len(start))) * rng.uniform(0, 1, (TRIALS, 1))
    return limits if all(limits.ended(q) == ends(q) for q in postures) else None


def _limit(ends: Ends, start: NDArray[np.float64], i: int, sign: float) -> float:
    """Return sign · q_i at the first end on the way from `start` in one direction."""

    def ends_at(distance: float) -> bool:
        q = start.copy()
        q[i] += sign * distance
        return ends(q)

    near, far = 0.0, REACH
    if not ends_at(far):
        return np.inf
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if ends_at(middle) else (middle, far)
    return float(sign * start[i] + far)
