"""The ground of a track as a texture: drawn once, looked at through a moving window ever after.

The playfield is cut into blocks of one metre. Most show one colour and hold only its number; the others (edges of
the road, kerbs, seams between tiles) own a place in a pool of finely drawn blocks. A whole track then takes a few
megabytes, stays in the processor's cache, and a pixel over a plain block costs one look.

Colours are numbers: `OUTSIDE`, `MEADOW`, `GRASS`, `WHITE`, `RED`, and `TILE + i` for road tile i, whose colour
changes when it is touched. The texture does not depend on that; a palette made for each state does.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import inline_kernel, outer_kernel
from rhirl.simulators.car.track import Track

OUTSIDE, MEADOW, GRASS, WHITE, RED, TILE = range(6)
FIELD = 2000 / 6.0
"""Half the side of the playfield in metres; beyond it the world is black."""
PATCH = FIELD / 20.0
"""Side of a patch of grass; patches alternate with meadow in both directions."""
BLOCKS = 800
TEXELS = 16

# What a block holds. 0 … POOL − 1: the number of its only colour. POOL + k: place k in the pool, where one look
# will do, because the colours are alike (road tiles). Below zero a pixel needs more: EDGE is a border of the grass,
# which is computed, EDGE − 1 − k is place k in the pool.
POOL = 1 << 16
EDGE = -1


class Texture(NamedTuple):
    """The ground of a track."""

    blocks: NDArray[np.int32]
    """(BLOCKS, BLOCKS) what each square metre holds, indexed by y, then x."""
    pool: NDArray[np.uint16]
    """(P, TEXELS, TEXELS) the blocks with more than one colour."""


def draw_texture(track: Track, margin: float, grow: float) -> Texture:
    """Draw the ground of a track.

    Args:
        track: The polygons of its road and kerbs, in Gymnasium's drawing order.
        margin: Half the diagonal of a pixel (m): a block is plain if its surroundings, this far, are.
        grow: How far a drawn polygon reaches beyond its edges (m).
    """
    is_red = track.colors[:, 1] == 0
    numbers = np.where(track.polygon_tile >= 0, TILE + track.polygon_tile, np.where(is_red, RED, WHITE))
    blocks = _meadow(margin).copy()
    owner = np.full((BLOCKS, BLOCKS), -1, np.int32)
    places = _claim(track.polygons, grow + margin, owner)
    pool = np.empty((places, TEXELS, TEXELS), np.uint16)
    _fill(track.polygons, _half_planes(track.polygons), numbers, grow, owner, pool)
    kept = _sort(owner, pool, int(np.ceil(margin * TEXELS)), blocks)
    return Texture(blocks, pool[:kept].copy())


@inline_kernel
def ground(x: float, y: float) -> int:
    """Return the colour of the ground beside the road."""
    if abs(x) > FIELD or abs(y) > FIELD:
        return OUTSIDE
    # Shifted by an even number of patches, so that cutting off the fraction rounds down.
    return GRASS if (int(x / PATCH + 24.0) | int(y / PATCH + 24.0)) & 1 == 0 else MEADOW


@inline_kernel
def look(blocks: NDArray[np.int32], pool: NDArray[np.uint16], x: float, y: float) -> int:
    """Return the colour at (x, y), which must lie on a block."""
    u, v = x + BLOCKS / 2, y + BLOCKS / 2
    i, j = np.uint32(v), np.uint32(u)
    block = blocks[i, j]
    if 0 <= block < POOL:
        return block
    if block == EDGE:
        return ground(x, y)
    place = block - POOL if block >= POOL else EDGE - 1 - block
    return pool[place, np.uint32((v - i) * TEXELS), np.uint32((u - j) * TEXELS)]


@cache
def _meadow(margin: float) -> NDArray[np.int32]:
    """Return the blocks of a field without a road, which is the same for every track."""
    blocks = np.empty((BLOCKS, BLOCKS), np.int32)
    _fill_meadow(margin, blocks)
    return blocks


@outer_kernel
def _fill_meadow(margin: float, blocks: NDArray[np.int32]) -> None:
    for i in range(BLOCKS):
        for j in range(BLOCKS):
            x0, x1 = j - BLOCKS / 2 - margin, j + 1 - BLOCKS / 2 + margin
            y0, y1 = i - BLOCKS / 2 - margin, i + 1 - BLOCKS / 2 + margin
            color = ground(x0, y0)
            # Patches are far larger than blocks: four corners see whatever there is.
            plain = color == ground(x1, y0) and color == ground(x0, y1) and color == ground(x1, y1)
            blocks[i, j] = color if plain else EDGE


def _half_planes(polygons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the edges of convex polygons (P, 4, 2) as (a, b, c), ax + by ≤ c inside, a² + b² = 1: (P, 4, 3)."""
    ahead = np.roll(polygons, -1, axis=1) - polygons
    x, y = polygons[..., 0], polygons[..., 1]
    turn = np.sign(np.sum(x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1), axis=1))
    normal = np.stack([ahead[..., 1], -ahead[..., 0]], axis=-1) * turn[:, None, None]
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    return np.concatenate([normal, np.sum(normal * polygons, axis=-1, keepdims=True)], axis=-1)


@inline_kernel
def _span(polygon: NDArray[np.float64], axis: int, reach: float) -> tuple[int, int]:
    """Return the first and last block of a polygon's bounding box."""
    low, high = polygon[:, axis].min() - reach, polygon[:, axis].max() + reach
    return max(int(np.floor(low + BLOCKS / 2)), 0), min(int(np.floor(high + BLOCKS / 2)), BLOCKS - 1)


@outer_kernel
def _claim(polygons: NDArray[np.float64], reach: float, owner: NDArray[np.int32]) -> int:
    """Number the blocks that a polygon may come near; return how many there are."""
    places = 0
    for p in range(len(polygons)):
        i0, i1 = _span(polygons[p], 1, reach)
        j0, j1 = _span(polygons[p], 0, reach)
        for i in range(i0, i1 + 1):
            for j in range(j0, j1 + 1):
                if owner[i, j] < 0:
                    owner[i, j] = places
                    places += 1
    return places


@outer_kernel
def _fill(
    polygons: NDArray[np.float64],
    half_planes: NDArray[np.float64],
    numbers: NDArray[np.int64],
    grow: float,
    owner: NDArray[np.int32],
    pool: NDArray[np.uint16],
) -> None:
    """Paint the claimed blocks: ground first, then the polygons one over the other."""
    for i in range(BLOCKS):
        for j in range(BLOCKS):
            if owner[i, j] >= 0:
                for r in range(TEXELS):
                    for s in range(TEXELS):
                        x, y = j + (s + 0.5) / TEXELS - BLOCKS / 2, i + (r + 0.5) / TEXELS - BLOCKS / 2
                        pool[owner[i, j], r, s] = ground(x, y)
    for p in range(len(polygons)):
        i0, i1 = _span(polygons[p], 1, grow)
        j0, j1 = _span(polygons[p], 0, grow)
        for i in range(i0, i1 + 1):
            for j in range(j0, j1 + 1):
                for r in range(TEXELS):
                    y = i + (r + 0.5) / TEXELS - BLOCKS / 2
                    for s in range(TEXELS):
                        x = j + (s + 0.5) / TEXELS - BLOCKS / 2
                        inside = True
                        for e in range(4):
                            a, b, c = half_planes[p, e]
                            inside &= a * x + b * y <= c + grow
                        if inside:
                            pool[owner[i, j], r, s] = numbers[p]


@outer_kernel
def _sort(owner: NDArray[np.int32], pool: NDArray[np.uint16], reach: int, blocks: NDArray[np.int32]) -> int:
    """Decide what each claimed block holds and move the places still needed to the front of the pool.

    Args:
        owner: Place of each block in the pool, or −1.
        pool: All claimed blocks, painted.
        reach: How many texels of its surroundings a block must agree with to be plain.
        blocks: Blocks of the meadow, where the result goes.
    """
    kept = 0
    alike, single = np.empty(len(pool), np.bool_), np.empty(len(pool), np.bool_)
    for i in range(BLOCKS):
        for j in range(BLOCKS):
            if owner[i, j] < 0:
                continue
            first = pool[owner[i, j], 0, 0]
            one_kind, one_color = True, True
            for r in range(-reach, TEXELS + reach):
                for s in range(-reach, TEXELS + reach):
                    di, dj = r // TEXELS, s // TEXELS
                    place = owner[i + di, j + dj]
                    if place >= 0:
                        color = int(pool[place, r - di * TEXELS, s - dj * TEXELS])
                    else:
                        color = ground(j + (s + 0.5) / TEXELS - BLOCKS / 2, i + (r + 0.5) / TEXELS - BLOCKS / 2)
                    one_kind &= color == first or (color >= TILE and first >= TILE)
                    one_color &= color == first or (di != 0 or dj != 0)
            alike[owner[i, j]], single[owner[i, j]] = one_kind, one_color
    # Claimed in the order of the polygons, places are scattered over the field: gather by place, not by position.
    where = np.empty((len(pool), 2), np.int64)
    for i in range(BLOCKS):
        for j in range(BLOCKS):
            if owner[i, j] >= 0:
                where[owner[i, j], 0], where[owner[i, j], 1] = i, j
    for place in range(len(pool)):
        i, j = where[place]
        if alike[place] and single[place]:
            blocks[i, j] = pool[place, 0, 0]
            continue
        pool[kept] = pool[place]
        blocks[i, j] = POOL + kept if alike[place] else EDGE - 1 - kept
        kept += 1
    return kept
