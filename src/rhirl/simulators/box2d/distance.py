"""How far apart an edge and a polygon are (Gilbert, Johnson, Keerthi).

The closest point to the origin of the difference set {b - a} is sought with a simplex of up to three corners, each
made of one corner of the edge and one of the polygon. `Scratch.simplex` holds a row per simplex corner: the two
points, their difference and its weight; `Scratch.corners` the indices behind it, which also start the next query.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import Frame, to_world
from rhirl.simulators.box2d.ground import X1, Y1
from rhirl.simulators.box2d.scene import VERTEX_COUNT, VERTICES
from rhirl.simulators.box2d.settings import EPSILON, HALF, ONE, TWO, ZERO, kernel
from rhirl.simulators.box2d.state import Scratch

F = np.float32

AX, AY, BX, BY, DX, DY, WEIGHT = range(7)
CORNER_A, CORNER_B, OLD_A, OLD_B = range(4)
MAX_ITERATIONS = 20


class Simplex(Protocol):
    """Whatever holds a simplex: this lander's `Scratch`, or another scene's."""

    @property
    def simplex(self) -> NDArray[np.float32]:
        """(3, 7)."""
        ...

    @property
    def corners(self) -> NDArray[np.int64]:
        """(3, 4)."""
        ...


@kernel
def distance(
    scratch: Scratch, ground: NDArray[np.float32], edge: int, body: int, frame: Frame, count: int, metric: F
) -> tuple[F, int, F]:
    """Return the distance, and the size and metric of the final simplex to start the next query from.

    `count` and `metric` are those of the previous query, 0 at first.
    """
    simplex, corners = scratch.simplex, scratch.corners
    count = _start(scratch, ground, edge, body, frame, count, metric)
    for _ in range(MAX_ITERATIONS):
        old_count = count
        for i in range(count):
            corners[i, OLD_A], corners[i, OLD_B] = corners[i, CORNER_A], corners[i, CORNER_B]
        if count == 2:
            count = closest_on_segment(scratch)
        elif count == 3:
            count = closest_in_triangle(scratch)
        if count == 3:
            break
        dx, dy = search_direction(simplex, count)
        if dx * dx + dy * dy < EPSILON * EPSILON:
            break
        corner_a = support_edge(ground, edge, -dx, -dy)
        corner_b = support_body(body, frame, dx, dy)
        _set_corner(scratch, ground, edge, body, frame, count, corner_a, corner_b)
        duplicate = False
        for i in range(old_count):
            duplicate = duplicate or (corner_a == corners[i, OLD_A] and corner_b == corners[i, OLD_B])
        if duplicate:
            break
        count += 1
    if count == 3:
        return ZERO, count, ZERO
    if count == 1:
        dx, dy = simplex[0, AX] - simplex[0, BX], simplex[0, AY] - simplex[0, BY]
        return np.sqrt(dx * dx + dy * dy), count, ZERO
    p, q = simplex[0, WEIGHT], simplex[1, WEIGHT]
    dx = (p * simplex[0, AX] + q * simplex[1, AX]) - (p * simplex[0, BX] + q * simplex[1, BX])
    dy = (p * simplex[0, AY] + q * simplex[1, AY]) - (p * simplex[0, BY] + q * simplex[1, BY])
    return np.sqrt(dx * dx + dy * dy), count, _length(simplex)


@kernel
def _start(
    scratch: Scratch, ground: NDArray[np.float32], edge: int, body: int, frame: Frame, count: int, metric: F
) -> int:
    """Rebuild the last simplex in the new frame; begin afresh if it has changed its size much."""
    corners = scratch.corners
    for i in range(count):
        _set_corner(scratch, ground, edge, body, frame, i, corners[i, CORNER_A], corners[i, CORNER_B])
    if count == 2:
        length = _length(scratch.simplex)
        if length < HALF * metric or TWO * metric < length or length < EPSILON:
            count = 0
    if count == 0:
        _set_corner(scratch, ground, edge, body, frame, 0, 0, 0)
        count = 1
    return count


@kernel
def _set_corner(
    scratch: Scratch,
    ground: NDArray[np.float32],
    edge: int,
    body: int,
    frame: Frame,
    i: int,
    corner_a: int,
    corner_b: int,
) -> None:
    point = scratch.simplex[i]
    scratch.corners[i, CORNER_A], scratch.corners[i, CORNER_B] = corner_a, corner_b
    point[AX], point[AY] = ground[edge, X1 + 2 * corner_a], ground[edge, Y1 + 2 * corner_a]
    point[BX], point[BY] = to_world(frame, VERTICES[body, corner_b, 0], VERTICES[body, corner_b, 1])
    point[DX], point[DY] = point[BX] - point[AX], point[BY] - point[AY]


@kernel
def support_edge(ground: NDArray[np.float32], edge: int, dx: F, dy: F) -> int:
    """Return the end of the edge furthest along d."""
    first = ground[edge, X1] * dx + ground[edge, Y1] * dy
    second = ground[edge, X1 + 2] * dx + ground[edge, Y1 + 2] * dy
    return 1 if second > first else 0


@kernel
def support_body(body: int, frame: Frame, dx: F, dy: F) -> int:
    """Return the corner of the polygon furthest along d."""
    lx, ly = frame.c * dx + frame.s * dy, -frame.s * dx + frame.c * dy
    best = 0
    best_value = VERTICES[body, 0, 0] * lx + VERTICES[body, 0, 1] * ly
    for i in range(1, VERTEX_COUNT[body]):
        value = VERTICES[body, i, 0] * lx + VERTICES[body, i, 1] * ly
        if value > best_value:
            best, best_value = i, value
    return best


@kernel
def _length(simplex: NDArray[np.float32]) -> F:
    dx, dy = simplex[0, DX] - simplex[1, DX], simplex[0, DY] - simplex[1, DY]
    return np.sqrt(dx * dx + dy * dy)


@kernel
def search_direction(simplex: NDArray[np.float32], count: int) -> tuple[F, F]:
    """Point from the simplex to the origin."""
    wx, wy = simplex[0, DX], simplex[0, DY]
    if count == 1:
        return -wx, -wy
    ex, ey = simplex[1, DX] - wx, simplex[1, DY] - wy
    if ex * -wy - ey * -wx > ZERO:
        return -ey, ex
    return ey, -ex


@kernel
def _keep(scratch: Simplex, target: int, source: int) -> None:
    for j in range(7):
        scratch.simplex[target, j] = scratch.simplex[source, j]
    for j in range(2):
        scratch.corners[target, j] = scratch.corners[source, j]


@kernel
def closest_on_segment(scratch: Simplex) -> int:
    """Weigh the two corners for the point closest to the origin; return how many corners it needs."""
    s = scratch.simplex
    ex, ey = s[1, DX] - s[0, DX], s[1, DY] - s[0, DY]
    second = -(s[0, DX] * ex + s[0, DY] * ey)
    if second <= ZERO:
        return 1
    first = s[1, DX] * ex + s[1, DY] * ey
    if first <= ZERO:
        _keep(scratch, 0, 1)
        return 1
    _weigh(s, 0, 1, first, second)
    return 2


@kernel
def _weigh(s: NDArray[np.float32], i: int, j: int, first: F, second: F) -> None:
    inverse = ONE / (first + second)
    s[i, WEIGHT], s[j, WEIGHT] = first * inverse, second * inverse


@kernel
def closest_in_triangle(scratch: Simplex) -> int:
    """Reduce the triangle to the part closest to the origin: a corner, a side, or (3) the origin is inside."""
    s = scratch.simplex
    x1, y1, x2, y2, x3, y3 = s[0, DX], s[0, DY], s[1, DX], s[1, DY], s[2, DX], s[2, DY]
    e12x, e12y, e13x, e13y, e23x, e23y = x2 - x1, y2 - y1, x3 - x1, y3 - y1, x3 - x2, y3 - y2
    d12_1, d12_2 = x2 * e12x + y2 * e12y, -(x1 * e12x + y1 * e12y)
    d13_1, d13_2 = x3 * e13x + y3 * e13y, -(x1 * e13x + y1 * e13y)
    d23_1, d23_2 = x3 * e23x + y3 * e23y, -(x2 * e23x + y2 * e23y)
    area = e12x * e13y - e12y * e13x
    side_1 = area * (x2 * y3 - y2 * x3)
    side_2 = area * (x3 * y1 - y3 * x1)
    side_3 = area * (x1 * y2 - y1 * x2)
    if d12_2 <= ZERO and d13_2 <= ZERO:
        return 1
    if d12_1 > ZERO and d12_2 > ZERO and side_3 <= ZERO:
        _weigh(s, 0, 1, d12_1, d12_2)
        return 2
    if d13_1 > ZERO and d13_2 > ZERO and side_2 <= ZERO:
        _weigh(s, 0, 2, d13_1, d13_2)
        _keep(scratch, 1, 2)
        return 2
    if d12_1 <= ZERO and d23_2 <= ZERO:
        _keep(scratch, 0, 1)
        return 1
    if d13_1 <= ZERO and d23_1 <= ZERO:
        _keep(scratch, 0, 2)
        return 1
    if d23_1 > ZERO and d23_2 > ZERO and side_1 <= ZERO:
        _weigh(s, 1, 2, d23_1, d23_2)
        _keep(scratch, 0, 2)
        return 2
    return 3
