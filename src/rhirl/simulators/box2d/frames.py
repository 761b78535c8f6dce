"""Vectors, rotations and frames, each operation with the roundings Box2D gives it.

A body's frame is (px, py, s, c): its origin and the sine and cosine of its angle. Box2D stores the centre of mass
and derives the origin from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rhirl.simulators.box2d.scene import CENTERS
from rhirl.simulators.box2d.settings import ONE, inline_kernel

F = np.float32


class Frame(NamedTuple):
    """Origin and rotation of a body."""

    px: F
    py: F
    s: F
    c: F


class Pose(NamedTuple):
    """Centre of mass and angle of a body."""

    x: F
    y: F
    a: F


class Motion(NamedTuple):
    """Velocity of the centre of mass and angular velocity of a body."""

    x: F
    y: F
    w: F


@inline_kernel
def lesser(a: F, b: F) -> F:
    """Return min(a, b)."""
    return a if a < b else b


@inline_kernel
def greater(a: F, b: F) -> F:
    """Return max(a, b)."""
    return a if a > b else b


@inline_kernel
def clamp(a: F, low: F, high: F) -> F:
    """Return `a` limited to [low, high]."""
    return greater(low, lesser(a, high))


@inline_kernel
def rotate(s: F, c: F, x: F, y: F) -> tuple[F, F]:
    """Turn a vector by the angle with sine s and cosine c."""
    return c * x - s * y, s * x + c * y


@inline_kernel
def frame_of(pose: Pose, body: int) -> Frame:
    """Return the frame whose centre of mass is at the pose."""
    s, c = np.sin(pose.a), np.cos(pose.a)
    lx, ly = CENTERS[body, 0], CENTERS[body, 1]
    return Frame(pose.x - (c * lx - s * ly), pose.y - (s * lx + c * ly), s, c)


@inline_kernel
def to_world(frame: Frame, x: F, y: F) -> tuple[F, F]:
    """Map a point of the body to the world."""
    return (frame.c * x - frame.s * y) + frame.px, (frame.s * x + frame.c * y) + frame.py


@inline_kernel
def to_local(frame: Frame, x: F, y: F) -> tuple[F, F]:
    """Map a point of the world to the body."""
    dx, dy = x - frame.px, y - frame.py
    return frame.c * dx + frame.s * dy, -frame.s * dx + frame.c * dy


@inline_kernel
def between(start: Pose, end: Pose, fraction: F) -> Pose:
    """Interpolate linearly from start (fraction 0) to end (1)."""
    rest = ONE - fraction
    return Pose(
        rest * start.x + fraction * end.x, rest * start.y + fraction * end.y, rest * start.a + fraction * end.a
    )
