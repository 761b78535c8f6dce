"""What LunarLander builds: shapes, masses and hinges, computed in float32 as Box2D computes them.

Bodies are numbered 0 lander, 1 left leg, 2 right leg (`env.legs[0]`, `env.legs[1]`). Polygons have up to six
vertices, counter-clockwise; a leg uses the first four.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import BOX_MARGIN, SKIN, f32

# As NumPy integers, for the compiler would make a copy of every kernel for each Python integer it is called with.
LANDER, LEFT, RIGHT = np.int64(0), np.int64(1), np.int64(2)
LEFT_HINGE, RIGHT_HINGE = np.int64(0), np.int64(1)
BODIES, EDGES = 3, 11
MAX_CONTACTS = BODIES * EDGES
SCALE = 30.0
VIEW_W, VIEW_H = 600 / SCALE, 400 / SCALE


class MassData(NamedTuple):
    """Mass properties of a polygon of uniform density."""

    mass: np.float32
    center: NDArray[np.float32]
    inertia: np.float32
    """About the centre of mass."""


def edge_normals(vertices: NDArray[np.float32]) -> NDArray[np.float32]:
    """Outward unit normals (n, 2) of a counter-clockwise polygon (n, 2)."""
    edges = np.roll(vertices, -1, axis=0) - vertices
    inverse_length = f32(1) / np.sqrt(edges[:, 0] * edges[:, 0] + edges[:, 1] * edges[:, 1])
    return np.stack([edges[:, 1] * inverse_length, -edges[:, 0] * inverse_length], axis=1)


def mass_data(vertices: NDArray[np.float32], density: float) -> MassData:
    """Integrate mass, centre and inertia over the triangles between the mean vertex and each side."""
    third = f32(1) / f32(3)
    start = np.zeros(2, f32)
    for vertex in vertices:
        start += vertex
    start *= f32(1) / f32(len(vertices))
    center, area, inertia = np.zeros(2, f32), f32(0), f32(0)
    for vertex, following in zip(vertices, np.roll(vertices, -1, axis=0), strict=True):
        a, b = vertex - start, following - start
        D = a[0] * b[1] - a[1] * b[0]
        triangle = f32(0.5) * D
        area += triangle
        center += triangle * third * (a + b)
        second_moment = a * a + b * a + b * b
        inertia += f32(0.25) * third * D * (second_moment[0] + second_moment[1])
    mass = f32(density) * area
    center *= f32(1) / area
    centroid = center + start
    about_origin = f32(density) * inertia + mass * (_dot(centroid, centroid) - _dot(center, center))
    # A body weighs its fixtures' centres by mass and moves the inertia to the mean, one rounding each.
    mean = mass * centroid * (f32(1) / mass)
    return MassData(mass, mean, about_origin - mass * _dot(mean, mean))


def area_centroid(vertices: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centroid (2,) with triangles from the origin: the narrow phase uses it, rounded unlike the centre of mass."""
    third = f32(1) / f32(3)
    center, area = np.zeros(2, f32), f32(0)
    for vertex, following in zip(vertices, np.roll(vertices, -1, axis=0), strict=True):
        triangle = f32(0.5) * (vertex[0] * following[1] - vertex[1] * following[0])
        area += triangle
        center += triangle * third * (vertex + following)
    return center * (f32(1) / area)


def _dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    return a[0] * b[0] + a[1] * b[1]


def _padded(lander: NDArray[np.float32], leg: NDArray[np.float32]) -> NDArray[np.float32]:
    table = np.zeros((BODIES, 6, 2), f32)
    table[LANDER, : len(lander)] = lander
    table[LEFT:, : len(leg)] = leg
    return table


# The convex hull Box2D makes of the lander's outline starts at its rightmost lowest vertex.
_lander = (np.array([(17, -10), (17, 0), (14, 17), (-14, 17), (-17, 0), (-17, -10)]) / SCALE).astype(f32)
_half_width, _half_height = f32(2 / SCALE), f32(8 / SCALE)
_leg = np.array(
    [
        (-_half_width, -_half_height),
        (_half_width, -_half_height),
        (_half_width, _half_height),
        (-_half_width, _half_height),
    ],
    f32,
)
_leg_normals = np.array([(0, -1), (1, 0), (0, 1), (-1, 0)], f32)
_masses = [mass_data(_lander, 5.0), mass_data(_leg, 1.0), mass_data(_leg, 1.0)]

VERTEX_COUNT = np.array([6, 4, 4])
VERTICES = _padded(_lander, _leg)
NORMALS = _padded(edge_normals(_lander), _leg_normals)
CENTROIDS = np.stack([area_centroid(_lander), np.zeros(2, f32), np.zeros(2, f32)])
CENTERS = np.stack([m.center for m in _masses])
INV_MASS = np.array([f32(1) / m.mass for m in _masses])
INV_INERTIA = np.array([f32(1) / m.inertia for m in _masses])

# Edge 0 is the floor of the world with Box2D's default friction, edges 1 to 10 are the terrain.
_edge_friction = np.array([0.2] + [0.1] * 10, f32)
_body_friction = np.array([0.1, 0.2, 0.2], f32)
FRICTION = np.sqrt(_edge_friction[None] * _body_friction[:, None])

# One row per leg: the hinge sits at the lander's origin.
LEG_SIDE = (-1, 1)
ANCHORS = np.array([(side * 20 / SCALE, 18 / SCALE) for side in LEG_SIDE], f32)
REFERENCE_ANGLE = np.array([f32(side * 0.05) for side in LEG_SIDE])
MOTOR_SPEED = np.array([0.3 * side for side in LEG_SIDE], f32)
LOWER_ANGLE = np.array([0.9 - 0.5, -0.9], f32)
UPPER_ANGLE = np.array([0.9, -0.9 + 0.5], f32)
MAX_MOTOR_TORQUE = f32(40.0)

_start = np.array([(VIEW_W / 2, VIEW_H)] + [(VIEW_W / 2 - side * 20 / SCALE, VIEW_H) for side in LEG_SIDE], f32)
_start_angle = np.array([0.0, *(side * 0.05 for side in LEG_SIDE)], f32)


def _start_box(body: int) -> NDArray[np.float32]:
    s, c = f32(math.sin(_start_angle[body])), f32(math.cos(_start_angle[body]))
    v = VERTICES[body, : VERTEX_COUNT[body]]
    corners = np.stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1]], axis=1) + _start[body]
    return np.concatenate([corners.min(axis=0) - SKIN - BOX_MARGIN, corners.max(axis=0) + SKIN + BOX_MARGIN])


# Poses (3, 3) and enlarged boxes (3, 4) of the bodies before the first step; the lander stands upright.
START_POSES = np.column_stack([_start + CENTERS, _start_angle])
START_BOXES = np.stack([_start_box(body) for body in range(BODIES)])
