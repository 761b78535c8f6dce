"""One car as a flat row of float64: all that the next step, the next frame and the next reward depend on.

A batch of cars is an array (N, STATE_DIM). Body 0 is the hull, bodies 1 to 4 are the wheels in Gymnasium's order:
front left, front right, rear left, rear right. Box2D's numbers are float32 and are kept here without loss.

    state[BODY * body + X]              centre of mass, angle, velocities, time at rest: see the columns below
    state[JOINT + 4 * wheel + j]        impulse of a wheel's hinge in the last step: pin x, y, limit, motor
    state[WHEEL + 4 * wheel + OMEGA]    spin, rolling phase, gas, and whether the wheel was on a tile
    state[TIME] …                       clock and score
    state[VISITED], state[PAINTED]      sets of tiles, 32 to a number
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import inline_kernel
from rhirl.simulators.car.scene import HULL_CENTER

F = np.float32
HULL = 0
WHEELS = 4
BODIES = 1 + WHEELS
MAX_TILES = 512

BODY = 7
"""Numbers per body; the state begins with the bodies."""
X, Y, ANGLE, VX, VY, SPIN, REST = range(BODY)
"""Columns of a body: centre of mass (m), angle (rad), their velocities, time at rest (s)."""
JOINT = BODIES * BODY
WHEEL = JOINT + 4 * WHEELS
OMEGA, PHASE, GAS, ON_ROAD = range(4)
"""Columns of a wheel: rolling speed (rad/s), rolling angle (rad), gas in [0, 1], 1 if it touches a tile."""
TIME, REWARD, PREVIOUS_REWARD, VISITED_COUNT, NEW_LAP = range(WHEEL + 4 * WHEELS, WHEEL + 4 * WHEELS + 5)
"""Gymnasium's `t` (s, for the zoom), `reward`, `prev_reward`, `tile_visited_count`, `new_lap`."""
WORDS = MAX_TILES // 32
VISITED = NEW_LAP + 1
"""First of 16 numbers: tiles a wheel has touched (they count)."""
PAINTED = VISITED + WORDS
"""First of 16 numbers: plain grey tiles, which are every third one and all that a wheel or the hull has touched."""
STATE_DIM = PAINTED + WORDS


class Frame(NamedTuple):
    """Origin of a body (Box2D's `position`) and the sine and cosine of its angle."""

    px: F
    py: F
    s: F
    c: F


@inline_kernel
def frame_of(x: F, y: F, angle: F, body: int) -> Frame:
    """Return the frame of a body whose centre of mass is at (x, y)."""
    s, c = np.sin(angle), np.cos(angle)
    if body != HULL:
        return Frame(x, y, s, c)
    lx, ly = HULL_CENTER[0], HULL_CENTER[1]
    return Frame(x - (c * lx - s * ly), y - (s * lx + c * ly), s, c)


@inline_kernel
def body_frame(state: NDArray[np.float64], body: int) -> Frame:
    """Return the frame of a body of one car (STATE_DIM,)."""
    b = BODY * body
    return frame_of(F(state[b + X]), F(state[b + Y]), F(state[b + ANGLE]), body)


@inline_kernel
def has_tile(state: NDArray[np.float64], tiles: int, i: int) -> bool:
    """Tell whether tile i is in the set `tiles` (VISITED or PAINTED) of one car."""
    return bool((np.int64(state[tiles + i // 32]) >> (i % 32)) & 1)


@inline_kernel
def add_tile(state: NDArray[np.float64], tiles: int, i: int) -> None:
    """Put tile i into the set `tiles` of one car."""
    word = tiles + i // 32
    state[word] = np.float64(np.int64(state[word]) | (np.int64(1) << (i % 32)))


def joint_angle(states: NDArray[np.float64], wheel: int) -> NDArray[np.float64]:
    """Return the steering angle (…) of a wheel of cars (…, STATE_DIM), rounded as Box2D rounds it."""
    angles = states[..., [BODY * (1 + wheel) + ANGLE, ANGLE]].astype(np.float32)
    return (angles[..., 0] - angles[..., 1]).astype(np.float64)


def body_origin(states: NDArray[np.float64], body: int = HULL) -> NDArray[np.float64]:
    """Return Box2D's `position` (…, 2) of a body of cars (…, STATE_DIM)."""
    x, y, angle = np.moveaxis(states[..., BODY * body : BODY * body + 3].astype(np.float32), -1, 0)
    lx, ly = HULL_CENTER if body == HULL else np.zeros(2, np.float32)
    s, c = np.sin(angle), np.cos(angle)
    return np.stack([x - (c * lx - s * ly), y - (s * lx + c * ly)], axis=-1).astype(np.float64)
