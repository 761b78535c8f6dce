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


def invert_observation(flying: World, observation: NDArray[np.float64]) -> World:
    """Move a world that flies freely to where an observation (8,) was made.

    The observation tells pose and velocity of the lander; its legs keep the place they have in flight and move with
    it as one rigid body. Contacts are found again in the next step, if there are any: a lander that stood on its
    legs is set down once more.
    """
    x, y, vx, vy, angle, spin = np.asarray(observation, np.float64)[:6]
    bodies = flying.bodies.astype(np.float64)
    turn = angle - bodies[0, ANGLE]
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    offsets = (bodies[:, [X, Y]] - bodies[0, [X, Y]]) @ rotation.T
    omega = spin * FRAMES_PER_SECOND / 20
    bodies[:, [X, Y]] = bodies[0, [X, Y]] + offsets
    bodies[:, ANGLE] += turn
    bodies[:, [VX, VY]] = np.array([vx, vy]) * FRAMES_PER_SECOND / HALF_VIEW
    bodies[:, [VX, VY]] += omega * np.stack([-offsets[:, 1], offsets[:, 0]], axis=1)
    bodies[:, SPIN] = omega
    # What is observed is the lander's origin, not its centre of mass: where it is now says how far to move.
    turned = flying._replace(bodies=bodies.astype(np.float32))
    worlds: Iterable[Any] = (array[None] for array in turned)
    seen = observe(World(*worlds))
    bodies[:, [X, Y]] += (np.array([x, y]) - seen[:2]) * HALF_VIEW
    # Bounding boxes that hold nothing are made anew by the broad phase.
    nowhere = np.tile(np.array([np.inf, np.inf, -np.inf, -np.inf], np.float32), (len(bodies), 1))
    return flying._replace(bodies=bodies.astype(np.float32), boxes=nowhere)
