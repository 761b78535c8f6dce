"""Where a MuJoCo environment ends its task, found by asking the environment itself.

Hopper, Walker2d, Ant and Humanoid end when a position leaves its range (a height, a lean):

    ended  ⇔  q_i ≤ lower_i  or  q_i ≥ upper_i,   for some position i

Nothing states these limits as data. Each is found by moving one position away from a sound posture until the
environment ends there, and halving the interval. A rule of another form is noticed, and then there are no limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.mujoco_observation import ObservationRule

REACH = 10.0  # metres or radians within which a limit is looked for
HALVINGS = 60  # from REACH down to neighbouring numbers
TRIALS = 200  # random postures the limits must agree on with the environment

Ends = Callable[[NDArray[np.float64]], bool]


class Limits(NamedTuple):
    """Open intervals of some entries of a vector within which the task goes on."""

    entries: NDArray[np.intp]
    """(j,)"""
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    def ended(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell where the task ends: (..., n) → (...)."""
        limited = x[..., self.entries]
        return np.asarray(np.logical_or.reduce((limited <= self.lower) | (limited >= self.upper), axis=-1))

    def observed(self, rule: ObservationRule) -> Limits | None:
        """Return these limits of positions as limits of the observation; None if it leaves a limited one out."""
        seen = {int(rule.index[entry]): entry for entry in rule.entries("qpos")}
        if not seen.keys() >= set(self.entries.tolist()):
            return None
        return self._replace(entries=np.array([seen[i] for i in self.entries.tolist()], np.intp))


def find_limits(ends: Ends, start: NDArray[np.float64]) -> Limits | None:
    """Find the limits around positions `start` (nq,), where the task goes on; None if they are no intervals."""
    lower = np.array([-_limit(ends, start, i, -1.0) for i in range(len(start))])
    upper = np.array([_limit(ends, start, i, 1.0) for i in range(len(start))])
    entries = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    limits, rng = Limits(entries, lower[entries], upper[entries]), np.random.default_rng(0)
    postures = start + rng.uniform(-1, 1, (TRIALS, len(start))) * rng.uniform(0, 1, (TRIALS, 1))
    return limits if limits.ended(postures).tolist() == [ends(q) for q in postures] else None


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
