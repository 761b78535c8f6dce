"""The indicators below the picture: speed, the four wheels' spin, steering and yaw rate, as bars on black.

They are the only place where a single frame shows motion. Left of them Gymnasium writes the score, which is the sum
of rewards: no learner may see it, so it is never drawn, and `SCORE` names the pixels to blacken in frames drawn by
Gymnasium itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import kernel
from rhirl.simulators.car.render_window import BAR_TOP, FRAME, PAINTED_H, PAINTED_W
from rhirl.simulators.car.state import ANGLE, BODY, OMEGA, SPIN, VX, VY, WHEEL

SCORE = (slice(BAR_TOP, FRAME), slice(0, 12))
"""Rows and columns of the frame with the score."""
UNIT_X, UNIT_Y = PAINTED_W / 40.0, PAINTED_H / 40.0
SPEED_BAR, FRONT_BAR, REAR_BAR, STEERING_BAR, YAW_BAR = range(5)


@kernel
def draw_indicators(
    state: NDArray[np.float64], factor: int, colors: NDArray[np.float32], out: NDArray[np.uint8]
) -> None:
    """Draw the bars of one car (STATE_DIM,) into a frame; colors (5, channels)."""
    out[BAR_TOP // factor :] = 0
    _upright(5, 0.02 * np.sqrt(state[VX] ** 2 + state[VY] ** 2), 0.02, factor, colors[SPEED_BAR], out)
    for n in range(4):
        color = colors[FRONT_BAR if n < 2 else REAR_BAR]
        _upright(7 + n, 0.01 * state[WHEEL + 4 * n + OMEGA], 0.01, factor, color, out)
    steering = float(np.float32(state[BODY + ANGLE]) - np.float32(state[ANGLE]))
    _sideways(20, -10.0 * steering, 10.0, factor, colors[STEERING_BAR], out)
    _sideways(30, -0.8 * state[SPIN], 0.8, factor, colors[YAW_BAR], out)


@kernel
def _upright(
    place: int, value: float, gain: float, factor: int, color: NDArray[np.float32], out: NDArray[np.uint8]
) -> None:
    """Draw a bar that rises from its base; like Gymnasium's, none for less than 1e-4 of what it shows."""
    if abs(value) > 1e-4 * gain:
        base, end = PAINTED_H - UNIT_Y, np.trunc(PAINTED_H - (UNIT_Y + UNIT_Y * value))
        # A bar's last column is painted over by the bar that touches it.
        right = (place + 1) * UNIT_X - (1 if 7 <= place <= 9 else 0)
        _rectangle(place * UNIT_X, right, min(base, end), max(base, end), factor, color, out)


@kernel
def _sideways(
    place: int, value: float, gain: float, factor: int, color: NDArray[np.float32], out: NDArray[np.uint8]
) -> None:
    """Draw a bar that grows to the left or right."""
    if abs(value) > 1e-4 * gain:
        base, end = place * UNIT_X, np.trunc((place + value) * UNIT_X)
        top, bottom = PAINTED_H - 4 * UNIT_Y, PAINTED_H - 2 * UNIT_Y
        _rectangle(min(base, end), max(base, end), top, bottom, factor, color, out)


@kernel
def _rectangle(
    x0: float,
    x1: float,
    y0: float,
    y1: float,
    factor: int,
    color: NDArray[np.float32],
    out: NDArray[np.uint8],
) -> None:
    """Add a rectangle of painted pixels, its last row and column included, to the black below the picture."""
    width, height = factor * PAINTED_W / FRAME, factor * PAINTED_H / FRAME
    left, right = max(x0 / width, 0.0), min((x1 + 1) / width, float(out.shape[1]))
    top, bottom = max(y0 / height, float(BAR_TOP // factor)), min((y1 + 1) / height, float(out.shape[0]))
    for i in range(int(top), int(np.ceil(bottom))):
        tall = min(bottom, i + 1.0) - max(top, float(i))
        for j in range(int(left), int(np.ceil(right))):
            share = tall * (min(right, j + 1.0) - max(left, float(j)))
            for k in range(out.shape[2]):
                out[i, j, k] += int(share * color[k] + 0.5)
