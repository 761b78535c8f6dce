"""What CarRacing builds: shapes, masses and hinges, read from a car that Gymnasium makes.

Box2D keeps inverse masses to itself; they are formed here from its numbers with its roundings. All wheels are
equal.
"""

from __future__ import annotations

import Box2D
import numpy as np
from gymnasium.envs.box2d.car_dynamics import SIZE, WHEELPOS, Car
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import f32

WHEELS = 4
HULL_PARTS = 4


def _inverse_mass(fixtures: list[Box2D.b2Fixture]) -> tuple[np.float32, np.float32, NDArray[np.float32]]:
    """Return 1/m, 1/I about the centre of mass, and that centre (2,) of a body."""
    mass, inertia, center = f32(0), f32(0), np.zeros(2, f32)
    for fixture in reversed(fixtures):
        part = fixture.massData
        mass += f32(part.mass)
        center += f32(part.mass) * np.array(part.center, f32)
        inertia += f32(part.I)
    inverse = f32(1) / mass
    center *= inverse
    inertia -= mass * (center[0] * center[0] + center[1] * center[1])
    return inverse, f32(1) / inertia, center


def _outline(fixtures: list[Box2D.b2Fixture]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return corners (parts, 8, 2), counter-clockwise, and how many each part has."""
    corners = [np.array(fixture.shape.vertices, f32) for fixture in fixtures]
    table = np.zeros((len(corners), 8, 2), f32)
    for part, vertices in zip(table, corners, strict=True):
        part[: len(vertices)] = vertices
    return table, np.array([len(vertices) for vertices in corners])


_car = Car(Box2D.b2World((0, 0)), 0.0, 0.0, 0.0)
_hull, _wheel = _car.hull.fixtures, _car.wheels[0].fixtures

MASS_A, INERTIA_A, HULL_CENTER = _inverse_mass(_hull)
"""Inverse mass and inertia of the hull, and its centre of mass (2,)."""
MASS_B, INERTIA_B, _ = _inverse_mass(_wheel)
"""Inverse mass and inertia of a wheel."""
_hull_outline, _hull_corners = _outline(_hull)
_wheel_outline, _wheel_corners = _outline(_wheel)
# Parts 0 to 3 are the hull, part 4 is any of the wheels.
PARTS = np.concatenate([_hull_outline, _wheel_outline])
CORNERS = np.concatenate([_hull_corners, _wheel_corners])
WHEEL_PART = HULL_PARTS

ANCHORS = np.array([(x * SIZE, y * SIZE) for x, y in WHEELPOS], f32) - HULL_CENTER
"""(4, 2): where the wheels' hinges are, from the hull's centre of mass. A hinge sits at its wheel's centre."""

LOWER_ANGLE, UPPER_ANGLE = (f32(limit) for limit in _car.wheels[0].joint.limits)
MAX_MOTOR_TORQUE = f32(180 * 900 * SIZE * SIZE)
