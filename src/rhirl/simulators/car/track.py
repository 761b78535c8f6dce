"""The road Gymnasium generates from a seed, as arrays for physics and drawing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.box2d.car_racing import PLAYFIELD, CarRacing
from numpy.typing import NDArray

from rhirl.simulators.car.bridge import read_car
from rhirl.simulators.car.state import MAX_TILES

CELL = 4.0
CELLS = int(np.ceil(2 * PLAYFIELD / CELL)) + 4
REACH = 1.5
"""No corner of a wheel or of a part of the hull is further from that part's middle (m)."""


class Track(NamedTuple):
    """N tiles and P polygons to draw. Two tracks of one seed are equal."""

    seed: int
    start: NDArray[np.float64]
    """(STATE_DIM,): the car after `reset`, which makes a first step of its own."""
    line: NDArray[np.float64]
    """(N, 4): Gymnasium's `track`: polar angle, heading, x, y along the middle of the road."""
    tiles: NDArray[np.float32]
    """(N, 4, 2): corners of the tiles as Box2D holds them, counter-clockwise."""
    polygons: NDArray[np.float64]
    """(P, 4, 2): what Gymnasium paints over the grass, in its order: tiles and kerbs."""
    colors: NDArray[np.uint8]
    """(P, 3): their colours before any tile is touched."""
    polygon_tile: NDArray[np.int64]
    """(P,): the tile behind a polygon, -1 for a kerb. A touched tile is painted `TOUCHED_COLOR`."""
    cells: NDArray[np.int64]
    """(CELLS² + 1,): where the tiles near each cell of a square grid begin in `members`."""
    members: NDArray[np.int64]
    """Tiles within `REACH` of each cell."""


TOUCHED_COLOR = (102, 102, 102)


class UndrawnCarRacing(CarRacing):
    """The environment without the drawing, which takes nearly all its time."""

    def _render(self, mode: str) -> Any:
        return None


@lru_cache(maxsize=256)
def make_track(seed: int) -> Track:
    """Let Gymnasium generate the track of `reset(seed=seed)`."""
    env = _generator()
    env.reset(seed=seed)
    return track_of(env, seed)


@lru_cache(maxsize=1)
def _generator() -> UndrawnCarRacing:
    return UndrawnCarRacing()


def track_of(env: gymnasium.Env[Any, Any], seed: int) -> Track:
    """Read the track of an environment that has just been reset."""
    racing: Any = env.unwrapped
    if len(racing.road) > MAX_TILES:
        raise ValueError(f"the track of seed {seed} has {len(racing.road)} tiles, more than {MAX_TILES}")
    tiles = np.array([tile.fixtures[0].shape.vertices for tile in racing.road], np.float32)
    polygons = np.array([polygon for polygon, _ in racing.road_poly], np.float64)
    # The environment hands the very array of a tile's colour to its polygon, and touching repaints it in place.
    owner = {id(tile.color): tile.idx for tile in racing.road}
    polygon_tile = np.array([owner.get(id(color), -1) for _, color in racing.road_poly])
    colors = np.array([color for _, color in racing.road_poly])
    fresh = polygon_tile >= 0
    colors[fresh] = (racing.road_color + 0.01 * (polygon_tile[fresh, None] % 3) * 255).astype(int)
    cells, members = _grid(tiles)
    return Track(
        seed,
        read_car(racing),
        np.array(racing.track),
        tiles,
        polygons,
        colors.astype(np.uint8),
        polygon_tile,
        cells,
        members,
    )


def _grid(tiles: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort tiles into all cells that their bounding boxes, widened by REACH, overlap."""
    low = np.floor((tiles.min(axis=1) - REACH) / CELL).astype(int) + CELLS // 2
    high = np.floor((tiles.max(axis=1) + REACH) / CELL).astype(int) + CELLS // 2
    low, high = np.clip(low, 0, CELLS - 1), np.clip(high, 0, CELLS - 1)
    pairs = sorted(
        (column * CELLS + row, i)
        for i, ((x0, y0), (x1, y1)) in enumerate(zip(low.tolist(), high.tolist(), strict=True))
        for column in range(x0, x1 + 1)
        for row in range(y0, y1 + 1)
    )
    cell = np.array([c for c, _ in pairs])
    return np.searchsorted(cell, np.arange(CELLS**2 + 1)), np.array([i for _, i in pairs])
