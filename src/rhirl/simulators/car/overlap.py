"""Whether a part of the car and a tile touch: no further apart than Box2D's two skins.

Sides that separate the shapes, or none at all, decide nearly always. In the two centimetres between, the distance
is computed with Box2D's own iteration (Gilbert, Johnson, Keerthi), whose roundings are as large as 10⁻⁵ m here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.distance import (
    AX,
    AY,
    BX,
    BY,
    CORNER_A,
    CORNER_B,
    DX,
    DY,
    MAX_ITERATIONS,
    OLD_A,
    OLD_B,
    WEIGHT,
    closest_in_triangle,
    closest_on_segment,
    search_direction,
)
from rhirl.simulators.box2d.settings import EPSILON, TWO_SKINS, ZERO, f32, inline_kernel, kernel
from rhirl.simulators.car.scene import CORNERS, PARTS
from rhirl.simulators.car.state import Frame

F = np.float32
TOUCH = f32(10.0) * EPSILON
CLEARLY_APART = 0.021


class Overlap(NamedTuple):
    """Working memory of a test."""

    outline: NDArray[np.float32]
    """(8, 2): corners of the part in the world."""
    simplex: NDArray[np.float32]
    """(3, 7): see `box2d.distance`."""
    corners: NDArray[np.int64]
    """(3, 4): see `box2d.distance`."""


@kernel
def make_overlap() -> Overlap:
    """Allocate the memory."""
    return Overlap(np.zeros((8, 2), np.float32), np.zeros((3, 7), np.float32), np.zeros((3, 4), np.int64))


@kernel
def place_part(overlap: Overlap, part: int, frame: Frame) -> tuple[float, float]:
    """Put a part into the world and return the mean of its corners."""
    n, mx, my = CORNERS[part], 0.0, 0.0
    for i in range(n):
        lx, ly = PARTS[part, i, 0], PARTS[part, i, 1]
        x, y = (frame.c * lx - frame.s * ly) + frame.px, (frame.s * lx + frame.c * ly) + frame.py
        overlap.outline[i, 0], overlap.outline[i, 1] = x, y
        mx += np.float64(x)
        my += np.float64(y)
    return mx / n, my / n


@kernel
def touches(overlap: Overlap, part: int, frame: Frame, tile: NDArray[np.float32]) -> bool:
    """Tell whether the part, put into place before, touches a tile (4, 2)."""
    n = CORNERS[part]
    apart = _separation(tile, 4, overlap.outline, n)
    if apart > CLEARLY_APART:
        return False
    apart = max(apart, _separation(overlap.outline, n, tile, 4))
    if apart > CLEARLY_APART:
        return False
    if apart <= 0.0:
        return True
    distance = _distance(overlap, part, frame, tile)
    return bool((distance - TWO_SKINS if distance > TWO_SKINS else ZERO) < TOUCH)


@kernel
def _separation(a: NDArray[Any], m: int, b: NDArray[Any], n: int) -> float:
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
def _distance(overlap: Overlap, part: int, frame: Frame, tile: NDArray[np.float32]) -> F:
    """Return the distance between a tile (A) and the part (B) as Box2D computes it."""
    s, corners = overlap.simplex, overlap.corners
    _set_corner(overlap, tile, 0, 0, 0)
    count = 1
    for _ in range(MAX_ITERATIONS):
        old_count = count
        for i in range(count):
            corners[i, OLD_A], corners[i, OLD_B] = corners[i, CORNER_A], corners[i, CORNER_B]
        if count == 2:
            count = closest_on_segment(overlap)
        elif count == 3:
            count = closest_in_triangle(overlap)
        if count == 3:
            return ZERO
        dx, dy = search_direction(s, count)
        if dx * dx + dy * dy < EPSILON * EPSILON:
            break
        a = _furthest(tile, 4, -dx, -dy)
        b = _furthest(PARTS[part], CORNERS[part], frame.c * dx + frame.s * dy, -frame.s * dx + frame.c * dy)
        _set_corner(overlap, tile, count, a, b)
        duplicate = False
        for i in range(old_count):
            duplicate = duplicate or (a == corners[i, OLD_A] and b == corners[i, OLD_B])
        if duplicate:
            break
        count += 1
    if count == 1:
        dx, dy = s[0, AX] - s[0, BX], s[0, AY] - s[0, BY]
    else:
        p, q = s[0, WEIGHT], s[1, WEIGHT]
        dx = (p * s[0, AX] + q * s[1, AX]) - (p * s[0, BX] + q * s[1, BX])
        dy = (p * s[0, AY] + q * s[1, AY]) - (p * s[0, BY] + q * s[1, BY])
    return np.sqrt(dx * dx + dy * dy)


@kernel
def _set_corner(overlap: Overlap, tile: NDArray[np.float32], i: int, a: int, b: int) -> None:
    point = overlap.simplex[i]
    overlap.corners[i, CORNER_A], overlap.corners[i, CORNER_B] = a, b
    point[AX], point[AY] = tile[a, 0], tile[a, 1]
    point[BX], point[BY] = overlap.outline[b, 0], overlap.outline[b, 1]
    point[DX], point[DY] = point[BX] - point[AX], point[BY] - point[AY]


@inline_kernel
def _furthest(outline: NDArray[np.float32], n: int, dx: F, dy: F) -> int:
    """Return the corner furthest along d."""
    best, best_value = 0, outline[0, 0] * dx + outline[0, 1] * dy
    for i in range(1, n):
        value = outline[i, 0] * dx + outline[i, 1] * dy
        if value > best_value:
            best, best_value = i, value
    return best
