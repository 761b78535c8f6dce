"""Which tiles a car touches. Shapes touch where they are no further apart than Box2D's two skins.

Contacts are found where the bodies are before a step moves them, and grip is looked up before that: a wheel rolls
onto a tile one step before it feels it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import kernel
from rhirl.simulators.car.overlap import Overlap, place_part, touches
from rhirl.simulators.car.scene import HULL_PARTS, WHEEL_PART
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
LAP_COMPLETE = 0.95


class Road(NamedTuple):
    """The part of a `Track` that physics needs."""

    tiles: NDArray[np.float32]
    cells: NDArray[np.int64]
    members: NDArray[np.int64]


@kernel
def touch_tiles(state: NDArray[np.float64], road: Road, frames: NDArray[np.float32], overlap: Overlap) -> None:
    """Update grip, visited and painted tiles, and the reward for new ones; `overlap` is working memory."""
    for part in range(HULL_PARTS):
        _paint(state, road, part, _frame(frames, 0), overlap)
    for wheel in range(WHEELS):
        on_road = _roll(state, road, _frame(frames, 1 + wheel), overlap)
        state[WHEEL + 4 * wheel + ON_ROAD] = 1.0 if on_road else 0.0


@kernel
def _paint(state: NDArray[np.float64], road: Road, part: int, frame: Frame, overlap: Overlap) -> None:
    """Paint the tiles under one part of the hull."""
    first, last = _nearby(road, *place_part(overlap, part, frame))
    for k in range(first, last):
        i = road.members[k]
        if not has_tile(state, PAINTED, i) and touches(overlap, part, frame, road.tiles[i]):
            add_tile(state, PAINTED, i)


@kernel
def _roll(state: NDArray[np.float64], road: Road, frame: Frame, overlap: Overlap) -> bool:
    """Visit the tiles under a wheel; return whether there are any."""
    first, last = _nearby(road, *place_part(overlap, WHEEL_PART, frame))
    on_road = False
    for k in range(first, last):
        i = road.members[k]
        # Once the wheel is known to be on the road, only a new tile changes anything.
        if not (on_road and has_tile(state, VISITED, i)) and touches(overlap, WHEEL_PART, frame, road.tiles[i]):
            on_road = True
            _visit(state, i, len(road.tiles))
    return on_road


@kernel
def _nearby(road: Road, x: float, y: float) -> tuple[int, int]:
    """Return the range of `members` that a shape around (x, y) may touch."""
    column, row = int(np.floor(x / CELL)) + CELLS // 2, int(np.floor(y / CELL)) + CELLS // 2
    if not (0 <= column < CELLS and 0 <= row < CELLS):
        return 0, 0
    cell = column * CELLS + row
    return road.cells[cell], road.cells[cell + 1]


@kernel
def _frame(frames: NDArray[np.float32], body: int) -> Frame:
    return Frame(frames[body, 0], frames[body, 1], frames[body, 2], frames[body, 3])


@kernel
def _visit(state: NDArray[np.float64], i: int, tiles: int) -> None:
    if has_tile(state, VISITED, i):
        return
    add_tile(state, VISITED, i)
    add_tile(state, PAINTED, i)
    state[REWARD] += 1000.0 / tiles
    state[VISITED_COUNT] += 1.0
    if i == 0 and state[VISITED_COUNT] / tiles > LAP_COMPLETE:
        state[NEW_LAP] = 1.0
