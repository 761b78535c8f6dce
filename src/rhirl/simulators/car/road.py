"""Which tiles a car touches. Shapes touch where they are no further apart than Box2D's two skins.

Contacts are found where the bodies are before a step moves them, and grip is looked up before that: a wheel rolls
onto a tile one step before it feels it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import EPSILON, TWO_SKINS, f32, kernel
from rhirl.simulators.car.scene import CORNERS, HULL_PARTS, PARTS, WHEEL_PART
from rhirl.simulators.car.state import (
    NEW_LAP,
    ON_ROAD,
    PAINTED,
    REWARD,
    VISITED,
    VISITED_COUNT,
    WHEEL,
    WHEELS,
    Frame,
    add_tile,
    has_tile,
)
from rhirl.simulators.car.track import CELL, CELLS

F = np.float32
TOUCH = float(TWO_SKINS + f32(10.0) * EPSILON)
LAP_COMPLETE = 0.95


class Road(NamedTuple):
    """The part of a `Track` that physics needs."""

    tiles: NDArray[np.float32]
    cells: NDArray[np.int64]
    members: NDArray[np.int64]


@kernel
def touch_tiles(
    state: NDArray[np.float64], road: Road, frames: NDArray[np.float32], corners: NDArray[np.float64]
) -> None:
    """Update grip, visited and painted tiles, and the reward for new ones; `corners` (8, 2) is working memory."""
    for part in range(HULL_PARTS):
        _touch(state, road, part, -1, _frame(frames, 0), corners)
    for wheel in range(WHEELS):
        _touch(state, road, WHEEL_PART, wheel, _frame(frames, 1 + wheel), corners)


@kernel
def _frame(frames: NDArray[np.float32], body: int) -> Frame:
    return Frame(frames[body, 0], frames[body, 1], frames[body, 2], frames[body, 3])


@kernel
def _touch(
    state: NDArray[np.float64], road: Road, part: int, wheel: int, frame: Frame, corners: NDArray[np.float64]
) -> None:
    """Touch tiles with one part of the hull (wheel -1) or with a wheel."""
    n = CORNERS[part]
    mx, my = 0.0, 0.0
    for i in range(n):
        x, y = PARTS[part, i, 0], PARTS[part, i, 1]
        corners[i, 0] = (frame.c * x - frame.s * y) + frame.px
        corners[i, 1] = (frame.s * x + frame.c * y) + frame.py
        mx += corners[i, 0] / n
        my += corners[i, 1] / n
    column, row = int(np.floor(mx / CELL)) + CELLS // 2, int(np.floor(my / CELL)) + CELLS // 2
    on_road = False
    if 0 <= column < CELLS and 0 <= row < CELLS:
        cell = column * CELLS + row
        for k in range(road.cells[cell], road.cells[cell + 1]):
            i = road.members[k]
            if wheel < 0:
                if not has_tile(state, PAINTED, i) and touches(corners, n, road.tiles[i]):
                    add_tile(state, PAINTED, i)
            elif not (on_road and has_tile(state, VISITED, i)) and touches(corners, n, road.tiles[i]):
                on_road = True
                add_tile(state, PAINTED, i)
                _visit(state, i, len(road.tiles))
    if wheel >= 0:
        state[WHEEL + 4 * wheel + ON_ROAD] = 1.0 if on_road else 0.0


@kernel
def _visit(state: NDArray[np.float64], i: int, tiles: int) -> None:
    if has_tile(state, VISITED, i):
        return
    add_tile(state, VISITED, i)
    state[REWARD] += 1000.0 / tiles
    state[VISITED_COUNT] += 1.0
    if i == 0 and state[VISITED_COUNT] / tiles > LAP_COMPLETE:
        state[NEW_LAP] = 1.0


@kernel
def touches(corners: NDArray[np.float64], n: int, tile: NDArray[np.float32]) -> bool:
    """Tell whether a convex polygon (its first n corners) and a tile (4, 2) touch."""
    apart = max(_separation(tile, 4, corners, n), _separation(corners, n, tile, 4))
    if apart > TOUCH:
        return False
    if apart <= 0.0:
        return True
    return min(_distance(tile, 4, corners, n), _distance(corners, n, tile, 4)) < TOUCH * TOUCH


@kernel
def _separation(a: NDArray, m: int, b: NDArray, n: int) -> float:
    """Return how far b lies beyond that side of a which it lies furthest beyond."""
    most = -np.inf
    for i in range(m):
        j = i + 1 if i + 1 < m else 0
        x, y = np.float64(a[i, 0]), np.float64(a[i, 1])
        ex, ey = a[j, 0] - x, a[j, 1] - y
        least = np.inf
        for k in range(n):
            least = min(least, ey * (b[k, 0] - x) - ex * (b[k, 1] - y))
        most = max(most, least / np.sqrt(ex * ex + ey * ey))
    return most


@kernel
def _distance(a: NDArray, m: int, b: NDArray, n: int) -> float:
    """Return the least squared distance from a corner of b to a side of a."""
    least = np.inf
    for i in range(m):
        j = i + 1 if i + 1 < m else 0
        x, y = np.float64(a[i, 0]), np.float64(a[i, 1])
        ex, ey = a[j, 0] - x, a[j, 1] - y
        for k in range(n):
            dx, dy = b[k, 0] - x, b[k, 1] - y
            part = min(max((dx * ex + dy * ey) / (ex * ex + ey * ey), 0.0), 1.0)
            dx, dy = dx - part * ex, dy - part * ey
            least = min(least, dx * dx + dy * dy)
    return least
