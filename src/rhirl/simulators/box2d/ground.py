"""The static ground: eleven edges, each with the normal and the box the collision code asks for again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import greater, lesser
from rhirl.simulators.box2d.scene import EDGES
from rhirl.simulators.box2d.settings import BOX_MARGIN, ONE, SKIN, kernel

X1, Y1, X2, Y2, NX, NY, LEFT_X, LOW_Y, RIGHT_X, HIGH_Y = range(10)


@kernel
def make_grounds(terrain: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (n, 11, 10): x1, y1, x2, y2 of each edge, its normal, its enlarged box (left, low, right, high)."""
    grounds = np.empty((len(terrain), EDGES, 10), np.float32)
    for lane in range(len(terrain)):
        _make_ground(terrain[lane], grounds[lane])
    return grounds


@kernel
def _make_ground(terrain: NDArray[np.float32], ground: NDArray[np.float32]) -> None:
    for e in range(EDGES):
        x1, y1, x2, y2 = terrain[e, 0], terrain[e, 1], terrain[e, 2], terrain[e, 3]
        dx, dy = x2 - x1, y2 - y1
        inverse_length = ONE / np.sqrt(dx * dx + dy * dy)
        ground[e, X1], ground[e, Y1], ground[e, X2], ground[e, Y2] = x1, y1, x2, y2
        ground[e, NX], ground[e, NY] = dy * inverse_length, -(dx * inverse_length)
        ground[e, LEFT_X] = lesser(x1, x2) - SKIN - BOX_MARGIN
        ground[e, LOW_Y] = lesser(y1, y2) - SKIN - BOX_MARGIN
        ground[e, RIGHT_X] = greater(x1, x2) + SKIN + BOX_MARGIN
        ground[e, HIGH_Y] = greater(y1, y2) + SKIN + BOX_MARGIN
