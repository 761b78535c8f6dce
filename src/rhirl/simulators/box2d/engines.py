"""The engines of the lander, in double precision as Gymnasium's Python computes them."""

from __future__ import annotations

import math

import numpy as np

from rhirl.simulators.box2d.contacts import wake
from rhirl.simulators.box2d.scene import INV_INERTIA, INV_MASS, LANDER, SCALE
from rhirl.simulators.box2d.settings import kernel
from rhirl.simulators.box2d.state import ANGLE, SPIN, VX, VY, Scratch, World, X, Y, frame_at

MAIN_POWER, SIDE_POWER = 13.0, 0.6
MAIN_DEPTH, SIDE_AWAY, SIDE_HEIGHT = 4.0, 12.0, 14.0


@kernel
def fire_engines(
    world: World, scratch: Scratch, lane: int, main: float, side: float, noise_0: float, noise_1: float
) -> None:
    """Push the lander for a control in [-1, 1]² and a dispersion in [-1, 1]².

    The main engine works from 50 % at `main` just above 0 to 100 % at 1; a side engine from |side| > 0.5.
    """
    angle = np.float64(world.bodies[LANDER, ANGLE])
    tip_x, tip_y = math.sin(angle), math.cos(angle)
    side_x, side_y = -tip_y, tip_x
    noise_0, noise_1 = noise_0 / SCALE, noise_1 / SCALE
    frame = frame_at(scratch, lane, LANDER)
    x, y = np.float64(frame.px), np.float64(frame.py)
    if main > 0.0:
        power = (main + 1.0) * 0.5
        ox = tip_x * (MAIN_DEPTH / SCALE + 2.0 * noise_0) + side_x * noise_1
        oy = -tip_y * (MAIN_DEPTH / SCALE + 2.0 * noise_0) - side_y * noise_1
        _push(world, x + ox, y + oy, -ox * MAIN_POWER * power, -oy * MAIN_POWER * power)
    if abs(side) > 0.5:
        direction = 1.0 if side > 0.0 else -1.0
        power = abs(side)
        away = 3.0 * noise_1 + direction * SIDE_AWAY / SCALE
        ox = tip_x * noise_0 + side_x * away
        oy = -tip_y * noise_0 - side_y * away
        # Gymnasium uses 17 here and 14 below, so the side engines twist with the lander's attitude.
        px, py = x + ox - tip_x * 17.0 / SCALE, y + oy + tip_y * SIDE_HEIGHT / SCALE
        _push(world, px, py, -ox * SIDE_POWER * power, -oy * SIDE_POWER * power)


@kernel
def _push(world: World, x: float, y: float, impulse_x: float, impulse_y: float) -> None:
    """Apply an impulse to the lander at a point of the world."""
    wake(world, LANDER)
    ix, iy = np.float32(impulse_x), np.float32(impulse_y)
    rx, ry = np.float32(x) - world.bodies[LANDER, X], np.float32(y) - world.bodies[LANDER, Y]
    world.bodies[LANDER, VX] += INV_MASS[LANDER] * ix
    world.bodies[LANDER, VY] += INV_MASS[LANDER] * iy
    world.bodies[LANDER, SPIN] += INV_INERTIA[LANDER] * (rx * iy - ry * ix)
