"""Where an edge of the ground and a polygon touch: up to two points on a common reference face.

The face is either the edge (points are then kept in the polygon's frame) or a side of the polygon (points are kept
in the world). The other shape's side is clipped to the reference face; clipped points within the two skins touch.
Each point has an id built from the features that made it, by which impulses survive from step to step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import Frame, lesser, rotate, to_local, to_world
from rhirl.simulators.box2d.ground import NX, NY, X1, X2, Y1, Y2
from rhirl.simulators.box2d.scene import CENTROIDS, NORMALS, VERTEX_COUNT, VERTICES
from rhirl.simulators.box2d.settings import MAX_FLOAT, TWO_SKINS, ZERO, f32, kernel

F = np.float32

ON_EDGE, ON_POLYGON = 1, 2
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = f32(0.98), f32(0.001)


class Manifold(NamedTuple):
    """Reference face (normal n, point p) and the one or two touching points with their ids."""

    points: int
    face: int
    nx: F
    ny: F
    px: F
    py: F
    x0: F
    y0: F
    id0: int
    x1: F
    y1: F
    id1: int


class ClipPoint(NamedTuple):
    """A point on the way through clipping: features are (index on A, index on B, type on A, type on B)."""

    x: F
    y: F
    index_a: int
    index_b: int
    type_a: int
    type_b: int


@kernel
def no_touch() -> Manifold:
    """Return the manifold of shapes apart."""
    return Manifold(0, ON_EDGE, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, 0, ZERO, ZERO, 0)


@kernel
def collide(ground: NDArray[np.float32], edge: int, body: int, frame: Frame) -> Manifold:
    """Touch edge `edge` with the polygon of `body` in `frame`."""
    v1x, v1y, v2x, v2y = ground[edge, X1], ground[edge, Y1], ground[edge, X2], ground[edge, Y2]
    nx, ny = ground[edge, NX], ground[edge, NY]
    mx, my = to_world(frame, CENTROIDS[body, 0], CENTROIDS[body, 1])
    front = nx * (mx - v1x) + ny * (my - v1y) >= ZERO
    if not front:
        nx, ny = -nx, -ny

    count = VERTEX_COUNT[body]
    edge_separation = MAX_FLOAT
    for i in range(count):
        x, y = to_world(frame, VERTICES[body, i, 0], VERTICES[body, i, 1])
        edge_separation = lesser(nx * (x - v1x) + ny * (y - v1y), edge_separation)
    if edge_separation > TWO_SKINS:
        return no_touch()

    best_side = -1
    side_separation = -MAX_FLOAT
    for i in range(count):
        x, y = to_world(frame, VERTICES[body, i, 0], VERTICES[body, i, 1])
        sx, sy = rotate(frame.s, frame.c, NORMALS[body, i, 0], NORMALS[body, i, 1])
        s = lesser(-sx * (x - v1x) + -sy * (y - v1y), -sx * (x - v2x) + -sy * (y - v2y))
        if s > TWO_SKINS:
            return no_touch()
        if s > side_separation:
            best_side, side_separation = i, s

    if side_separation > RELATIVE_TOLERANCE * edge_separation + ABSOLUTE_TOLERANCE:
        return _on_polygon(v1x, v1y, v2x, v2y, body, best_side, frame)
    return _on_edge(v1x, v1y, v2x, v2y, nx, ny, front, body, frame)


@kernel
def _on_edge(v1x: F, v1y: F, v2x: F, v2y: F, nx: F, ny: F, front: bool, body: int, frame: Frame) -> Manifold:
    """Clip the polygon's side that faces the edge most squarely to the edge."""
    count = VERTEX_COUNT[body]
    i1, best = 0, MAX_FLOAT
    for i in range(count):
        sx, sy = rotate(frame.s, frame.c, NORMALS[body, i, 0], NORMALS[body, i, 1])
        value = nx * sx + ny * sy
        if value < best:
            i1, best = i, value
    i2 = i1 + 1 if i1 + 1 < count else 0
    ax, ay = to_world(frame, VERTICES[body, i1, 0], VERTICES[body, i1, 1])
    bx, by = to_world(frame, VERTICES[body, i2, 0], VERTICES[body, i2, 1])
    a, b = ClipPoint(ax, ay, 0, i1, 1, 0), ClipPoint(bx, by, 0, i2, 1, 0)
    if not front:
        v1x, v1y, v2x, v2y = v2x, v2y, v1x, v1y
    first = 0 if front else 1
    kept, a, b = _clip_to_face(a, b, nx, ny, v1x, v1y, v2x, v2y, first, 1 - first)
    if not kept:
        return no_touch()
    lax, lay = to_local(frame, a.x, a.y)
    lbx, lby = to_local(frame, b.x, b.y)
    id_a = a.index_a | a.index_b << 8 | a.type_a << 16 | a.type_b << 24
    id_b = b.index_a | b.index_b << 8 | b.type_a << 16 | b.type_b << 24
    a_touches = bool(nx * (a.x - v1x) + ny * (a.y - v1y) <= TWO_SKINS)
    b_touches = bool(nx * (b.x - v1x) + ny * (b.y - v1y) <= TWO_SKINS)
    return _touching(ON_EDGE, nx, ny, v1x, v1y, a_touches, lax, lay, id_a, b_touches, lbx, lby, id_b)


@kernel
def _on_polygon(v1x: F, v1y: F, v2x: F, v2y: F, body: int, i1: int, frame: Frame) -> Manifold:
    """Clip the edge to side i1 of the polygon."""
    i2 = i1 + 1 if i1 + 1 < VERTEX_COUNT[body] else 0
    fx, fy = to_world(frame, VERTICES[body, i1, 0], VERTICES[body, i1, 1])
    gx, gy = to_world(frame, VERTICES[body, i2, 0], VERTICES[body, i2, 1])
    nx, ny = rotate(frame.s, frame.c, NORMALS[body, i1, 0], NORMALS[body, i1, 1])
    a, b = ClipPoint(v1x, v1y, 0, i1, 0, 1), ClipPoint(v2x, v2y, 0, i1, 0, 1)
    kept, a, b = _clip_to_face(a, b, nx, ny, fx, fy, gx, gy, i1, i2)
    if not kept:
        return no_touch()
    # Features are stored with the polygon as A, the owner of the reference face.
    id_a = a.index_b | a.index_a << 8 | a.type_b << 16 | a.type_a << 24
    id_b = b.index_b | b.index_a << 8 | b.type_b << 16 | b.type_a << 24
    a_touches = bool(nx * (a.x - fx) + ny * (a.y - fy) <= TWO_SKINS)
    b_touches = bool(nx * (b.x - fx) + ny * (b.y - fy) <= TWO_SKINS)
    return _touching(
        ON_POLYGON,
        NORMALS[body, i1, 0],
        NORMALS[body, i1, 1],
        VERTICES[body, i1, 0],
        VERTICES[body, i1, 1],
        a_touches,
        a.x,
        a.y,
        id_a,
        b_touches,
        b.x,
        b.y,
        id_b,
    )


@kernel
def _touching(
    face: int,
    nx: F,
    ny: F,
    px: F,
    py: F,
    a_touches: bool,
    ax: F,
    ay: F,
    id_a: int,
    b_touches: bool,
    bx: F,
    by: F,
    id_b: int,
) -> Manifold:
    """Keep the points within reach, the first of them first."""
    if a_touches and b_touches:
        return Manifold(2, face, nx, ny, px, py, ax, ay, id_a, bx, by, id_b)
    if a_touches:
        return Manifold(1, face, nx, ny, px, py, ax, ay, id_a, ZERO, ZERO, 0)
    if b_touches:
        return Manifold(1, face, nx, ny, px, py, bx, by, id_b, ZERO, ZERO, 0)
    return no_touch()


@kernel
def _clip_to_face(
    a: ClipPoint, b: ClipPoint, nx: F, ny: F, v1x: F, v1y: F, v2x: F, v2y: F, i1: int, i2: int
) -> tuple[bool, ClipPoint, ClipPoint]:
    """Cut the segment a–b off beyond both ends v1, v2 of a face with normal n; False if nothing remains."""
    kept, a, b = _clip(a, b, ny, -nx, ny * v1x + -nx * v1y, i1)
    if not kept:
        return False, a, b
    return _clip(a, b, -ny, nx, -ny * v2x + nx * v2y, i2)


@kernel
def _clip(a: ClipPoint, b: ClipPoint, nx: F, ny: F, offset: F, index: int) -> tuple[bool, ClipPoint, ClipPoint]:
    """Keep the part of a–b with n · x ≤ offset; the point inside comes first, then the cut."""
    da = nx * a.x + ny * a.y - offset
    db = nx * b.x + ny * b.y - offset
    if da <= ZERO and db <= ZERO:
        return True, a, b
    if da * db < ZERO:
        part = da / (da - db)
        cut = ClipPoint(a.x + part * (b.x - a.x), a.y + part * (b.y - a.y), index, a.index_b, 0, 1)
        return True, a if da <= ZERO else b, cut
    return False, a, b
