"""Keep still where all is lost.

Some tasks can be lost without an end: an ant on its back lies there until T, and no plan leads back. Whatever it
tries costs strength and wears it out, so it had better rest. Without a reward, the learned cost tells when. Let

    ḡ_t = mean of g(x) over the last H states

be how far from the experts a system has been for some time. Demonstrations have their bad moments, too, from which
they come back or with which they end. A system that has been farther away than any of them ever was,

    ḡ_t > ḡ_E,   ḡ_E = max of ḡ over all demonstrations,

commands nothing, u = 0, until it is nearer again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from rhirl.demos import Demonstrations
from rhirl.learning.objective import CostFunction


class Resignation:
    """Knows whether to go on.

    Args:
        cost: Mean of g over observations.
        farthest: ḡ_E.
        steps: H.
    """

    def __init__(self, cost: Callable[[NDArray[Any]], Any], farthest: float, steps: int) -> None:
        self._cost, self._farthest = cost, farthest
        self._g: deque[float] = deque(maxlen=steps)

    def reset(self) -> None:
        """Forget where the system has been."""
        self._g.clear()

    def __call__(self, x: NDArray[Any]) -> bool:
        """Whether to keep still, now that the system is seen at x (n,)."""
        self._g.append(float(self._cost(x)))
        return len(self._g) == self._g.maxlen and float(np.mean(self._g)) > self._farthest


def farthest(cost: CostFunction, demos: Demonstrations, steps: int) -> float:
    """Return ḡ_E; without bound if no demonstration has so many states."""
    g = np.asarray(cost(jnp.asarray(demos.observations)))
    shown = [row[: length + 1] for row, length in zip(g, demos.lengths, strict=True) if length + 1 >= steps]
    means = [np.lib.stride_tricks.sliding_window_view(row, steps).mean(axis=-1).max() for row in shown]
    return float(max(means, default=np.inf))
