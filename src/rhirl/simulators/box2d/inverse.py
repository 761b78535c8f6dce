"""From a lander's observation back to a state, so that planning can start where a demonstration was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.scene import VIEW_H, VIEW_W
from rhirl.simulators.box2d.simulate import observe
from rhirl.simulators.box2d.state import ANGLE, SPIN, VX, VY, World, X, Y

FRAMES_PER_SECOND = 50
HALF_VIEW = np.array([VIEW_W / 2, VIEW_H / 2])
"""Metres of one unit of the observed position."""


def invert_observation(near: World, observation: NDArray[np.float64]) -> World:
    """Move a world to where an observation (8,) was made.

    The observation tells pose and velocity of the lander. Its legs keep the place and the motion they have relative
    to it. Bounding boxes are moved, and contacts begin and end, in the next step.
    """
    x, y, vx, vy, angle, spin = np.asarray(observation, np.float64)[:6]
    bodies = near.bodies.astype(np.float64)
    turn = angle - bodies[0, ANGLE]
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    offsets = bodies[:, [X, Y]] - bodies[0, [X, Y]]
    turned_offsets = offsets @ rotation.T
    own = bodies[:, [VX, VY]] - rigid_velocities(bodies[0, [VX, VY]], bodies[0, SPIN], offsets)
    velocity, omega = np.array([vx, vy]) * FRAMES_PER_SECOND / HALF_VIEW, spin * FRAMES_PER_SECOND / 20
    bodies[:, [X, Y]] = bodies[0, [X, Y]] + turned_offsets
    bodies[:, ANGLE] += turn
    bodies[:, [VX, VY]] = rigid_velocities(velocity, omega, turned_offsets) + own @ rotation.T
    bodies[:, SPIN] += omega - bodies[0, SPIN]
    # What is observed is the lander's origin, not its centre of mass: where it is now says how far to move.
    turned = near._replace(bodies=bodies.astype(np.float32))
    worlds: Iterable[Any] = (array[None] for array in turned)
    seen = observe(World(*worlds))
    bodies[:, [X, Y]] += (np.array([x, y]) - seen[:2]) * HALF_VIEW
    return near._replace(bodies=bodies.astype(np.float32))


def rigid_velocities(
    velocity: NDArray[np.float64], omega: float, offsets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return v + ω × r of points at `offsets` r (b, 2) from one that moves with v (2,) and turns with ω: (b, 2)."""
    return np.asarray(velocity + omega * np.stack([-offsets[:, 1], offsets[:, 0]], axis=1))
