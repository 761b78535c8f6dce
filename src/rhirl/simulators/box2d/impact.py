"""When a moving polygon first comes within a hair of an edge (conservative advancement along separating axes).

The polygon moves from pose `start` to pose `end` while t runs from 0 to 1. At the current t the closest features
give an axis; along it the separation is driven to the target 0.005 by secant and bisection, until the distance
itself is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.distance import CORNER_A, CORNER_B, distance, support_body, support_edge
from rhirl.simulators.box2d.frames import Frame, Pose, between, frame_of, greater, lesser, rotate, to_world
from rhirl.simulators.box2d.ground import NX, NY, X1, X2, Y1, Y2
from rhirl.simulators.box2d.scene import VERTEX_COUNT, VERTICES
from rhirl.simulators.box2d.settings import (
    EPSILON,
    HALF,
    LINEAR_SLOP,
    MAX_FLOAT,
    ONE,
    PI,
    SKIN,
    TWO,
    ZERO,
    f32,
    kernel,
)
from rhirl.simulators.box2d.state import Scratch

F = np.float32

TARGET = max(LINEAR_SLOP, SKIN + SKIN - f32(3.0) * LINEAR_SLOP)
TOLERANCE = f32(0.25) * LINEAR_SLOP
TWO_PI = TWO * PI
MAX_AXES, MAX_CORNERS, MAX_ROOT_ITERATIONS = 20, 16, 50
POINTS, FACE_EDGE, FACE_BODY = 0, 1, 2
CLEARLY_APART, SAGITTA = f32(0.01), f32(0.125)


class Axis(NamedTuple):
    """A separating axis: between two points, on the edge, or on a side of the polygon (then in its frame)."""

    kind: int
    x: F
    y: F
    px: F
    py: F


@kernel
def time_of_impact(
    scratch: Scratch, ground: NDArray[np.float32], edge: int, body: int, start: Pose, end: Pose
) -> F:
    """Return the t of the impact, or 1 if there is none (also when Box2D gives up)."""
    turns = TWO_PI * np.floor(start.a / TWO_PI)
    start, end = Pose(start.x, start.y, start.a - turns), Pose(end.x, end.y, end.a - turns)
    t1 = ZERO
    count, metric = np.int64(0), ZERO
    for _ in range(MAX_AXES):
        frame = frame_of(between(start, end, t1), body)
        gap, count, metric = distance(scratch, ground, edge, body, frame, count, metric)
        if gap <= ZERO:
            return ONE
        if gap < TARGET + TOLERANCE:
            return t1
        axis = _make_axis(scratch, ground, edge, body, frame, count)
        done, t1, hit = _advance(axis, ground, edge, body, start, end, t1)
        if done:
            return t1 if hit else ONE
    return ONE


@kernel
def clearly_apart(ground: NDArray[np.float32], edge: int, body: int, start: Frame, end: Frame, turn: F) -> bool:
    """Tell cheaply that an impact is impossible, which is so for most contacts in most steps.

    A corner moves within turn²/8 of its chord (no corner is 1 m from its centre). If all chords stay on one side of
    the edge's line, or beyond one of its ends, by clearly more than the target distance, there is no impact.
    """
    x1, y1, x2, y2 = ground[edge, X1], ground[edge, Y1], ground[edge, X2], ground[edge, Y2]
    nx, ny = ground[edge, NX], ground[edge, NY]
    above, below = MAX_FLOAT, -MAX_FLOAT
    left, low, right, high = MAX_FLOAT, MAX_FLOAT, -MAX_FLOAT, -MAX_FLOAT
    for i in range(VERTEX_COUNT[body]):
        vx, vy = VERTICES[body, i, 0], VERTICES[body, i, 1]
        for frame in (start, end):
            x, y = to_world(frame, vx, vy)
            s = nx * (x - x1) + ny * (y - y1)
            above, below = lesser(above, s), greater(below, s)
            left, low, right, high = lesser(left, x), lesser(low, y), greater(right, x), greater(high, y)
    gap = greater(greater(above, -below), greater(left - greater(x1, x2), lesser(x1, x2) - right))
    gap = greater(gap, greater(low - greater(y1, y2), lesser(y1, y2) - high))
    return bool(gap > CLEARLY_APART + SAGITTA * turn * turn)


@kernel
def _make_axis(
    scratch: Scratch, ground: NDArray[np.float32], edge: int, body: int, frame: Frame, count: int
) -> Axis:
    """Turn the closest features into an axis that points to the side of the other shape."""
    corners = scratch.corners
    a, b = corners[0, CORNER_A], corners[0, CORNER_B]
    ax, ay = ground[edge, X1 + 2 * a], ground[edge, Y1 + 2 * a]
    if count == 1:
        bx, by = to_world(frame, VERTICES[body, b, 0], VERTICES[body, b, 1])
        x, y = _unit(bx - ax, by - ay)
        return Axis(POINTS, x, y, ZERO, ZERO)
    if a == corners[1, CORNER_A]:
        b2 = corners[1, CORNER_B]
        b1x, b1y, b2x, b2y = (
            VERTICES[body, b, 0],
            VERTICES[body, b, 1],
            VERTICES[body, b2, 0],
            VERTICES[body, b2, 1],
        )
        x, y = _unit(b2y - b1y, -(b2x - b1x))
        px, py = HALF * (b1x + b2x), HALF * (b1y + b2y)
        nx, ny = rotate(frame.s, frame.c, x, y)
        qx, qy = to_world(frame, px, py)
        if (ax - qx) * nx + (ay - qy) * ny < ZERO:
            x, y = -x, -y
        return Axis(FACE_BODY, x, y, px, py)
    a2 = corners[1, CORNER_A]
    a2x, a2y = ground[edge, X1 + 2 * a2], ground[edge, Y1 + 2 * a2]
    x, y = _unit(a2y - ay, -(a2x - ax))
    px, py = HALF * (ax + a2x), HALF * (ay + a2y)
    bx, by = to_world(frame, VERTICES[body, b, 0], VERTICES[body, b, 1])
    if (bx - px) * x + (by - py) * y < ZERO:
        x, y = -x, -y
    return Axis(FACE_EDGE, x, y, px, py)


@kernel
def _unit(x: F, y: F) -> tuple[F, F]:
    length = np.sqrt(x * x + y * y)
    if length < EPSILON:
        return x, y
    inverse = ONE / length
    return x * inverse, y * inverse


@kernel
def _deepest(axis: Axis, ground: NDArray[np.float32], edge: int, body: int, frame: Frame) -> tuple[int, int]:
    """Return the corners (of edge and polygon) that are closest along the axis; -1 where the face itself counts."""
    if axis.kind == POINTS:
        return support_edge(ground, edge, axis.x, axis.y), support_body(body, frame, -axis.x, -axis.y)
    if axis.kind == FACE_EDGE:
        return -1, support_body(body, frame, -axis.x, -axis.y)
    nx, ny = rotate(frame.s, frame.c, axis.x, axis.y)
    return support_edge(ground, edge, -nx, -ny), -1


@kernel
def _separation(axis: Axis, ground: NDArray[np.float32], edge: int, body: int, frame: Frame, a: int, b: int) -> F:
    """Return the separation of corners a, b along the axis."""
    if axis.kind == FACE_BODY:
        nx, ny = rotate(frame.s, frame.c, axis.x, axis.y)
        px, py = to_world(frame, axis.px, axis.py)
        return (ground[edge, X1 + 2 * a] - px) * nx + (ground[edge, Y1 + 2 * a] - py) * ny
    bx, by = to_world(frame, VERTICES[body, b, 0], VERTICES[body, b, 1])
    if axis.kind == FACE_EDGE:
        return (bx - axis.px) * axis.x + (by - axis.py) * axis.y
    return (bx - ground[edge, X1 + 2 * a]) * axis.x + (by - ground[edge, Y1 + 2 * a]) * axis.y


@kernel
def _advance(
    axis: Axis, ground: NDArray[np.float32], edge: int, body: int, start: Pose, end: Pose, t1: F
) -> tuple[bool, F, bool]:
    """Move t1 to where the axis is at its target separation, deepest corner by deepest corner.

    Returns (whether the search is over, t1, whether it ended with an impact).
    """
    t2 = ONE
    for _ in range(MAX_CORNERS):
        frame = frame_of(between(start, end, t2), body)
        a, b = _deepest(axis, ground, edge, body, frame)
        s2 = _separation(axis, ground, edge, body, frame, a, b)
        if s2 > TARGET + TOLERANCE:
            return True, ONE, False
        if s2 > TARGET - TOLERANCE:
            return False, t2, False
        s1 = _separation(axis, ground, edge, body, frame_of(between(start, end, t1), body), a, b)
        if s1 < TARGET - TOLERANCE:
            return True, t1, False
        if s1 <= TARGET + TOLERANCE:
            return True, t1, True
        a1, a2 = t1, t2
        for k in range(MAX_ROOT_ITERATIONS):
            t = a1 + (TARGET - s1) * (a2 - a1) / (s2 - s1) if k & 1 else HALF * (a1 + a2)
            s = _separation(axis, ground, edge, body, frame_of(between(start, end, t), body), a, b)
            if abs(s - TARGET) < TOLERANCE:
                t2 = t
                break
            if s > TARGET:
                a1, s1 = t, s
            else:
                a2, s2 = t, s
    return False, t1, False
