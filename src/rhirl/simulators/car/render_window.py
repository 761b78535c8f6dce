"""The window a frame opens on the ground: rotated with the car, which always drives upwards, low in the middle.

Gymnasium paints 1000 x 800 pixels at 16.2 pixels a metre and shrinks them to 96 x 96, so that a pixel of the frame
is 0.64 m wide and 0.51 m high and shows the mean colour of that rectangle. Here the mean is taken over `looks` x
`looks` points of the texture, and over one where the texture says that its surroundings are plain.

    world = hull + R(angle) · ((X − 500)/zoom, (600 − Y)/zoom),   X, Y: pixels painted by Gymnasium, from the top left
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.car.render_texture import BLOCKS, OUTSIDE, POOL, look

FRAME = 96
PAINTED_W, PAINTED_H = 1000, 800
ZOOM = 2.7 * 6.0
"""Pixels painted per metre, once the first second's zoom is over."""
CAR_X, CAR_Y = 500.0, 600.0
"""Where Gymnasium paints the origin of the hull."""
BAR_TOP = 84
"""First row of the frame that belongs to the indicators."""
SHIFT_X, SHIFT_Y = 0.0, 0.0
"""Polygons are painted at whole pixels, which moves them by this much on average."""

# Colours add up four at a time, as 16-bit fields of one integer: no sum of 16 x 16 looks overflows.
FIELD_BITS = 16
FIELD_MASK = (1 << FIELD_BITS) - 1


@nb.njit(cache=True)
def draw_ground(
    blocks: NDArray[np.int32],
    pool: NDArray[np.uint16],
    palette: NDArray[np.int64],
    px: float,
    py: float,
    angle: float,
    factor: int,
    looks: int,
    out: NDArray[np.uint8],
) -> None:
    """Draw the ground into a frame, down to the indicators.

    Args:
        blocks: The texture's blocks.
        pool: The texture's pool.
        palette: (C,) colour of each number, packed.
        px: Origin of the hull.
        py: Origin of the hull.
        angle: Of the hull.
        factor: Side of a pixel of `out`, in pixels of Gymnasium's frame.
        looks: How many times n to look along each side of a pixel that is not plain.
        out: (96/factor, 96/factor, channels).
    """
    channels = out.shape[2]
    s, c = np.sin(angle), np.cos(angle)
    width, height = factor * PAINTED_W / (FRAME * ZOOM), factor * PAINTED_H / (FRAME * ZOOM)
    right_x, right_y = width * c, width * s
    down_x, down_y = height * s, -height * c
    left, top = -(CAR_X + SHIFT_X) / ZOOM, (CAR_Y + SHIFT_Y) / ZOOM
    corner_x, corner_y = px + c * left - s * top, py + s * left + c * top
    share = 1.0 / (looks * looks)
    for i in range(BAR_TOP // factor):
        for j in range(out.shape[1]):
            x = corner_x + (j + 0.5) * right_x + (i + 0.5) * down_x
            y = corner_y + (j + 0.5) * right_y + (i + 0.5) * down_y
            u, v = x + BLOCKS / 2, y + BLOCKS / 2
            row, column = int(v), int(u)
            block = blocks[row, column] if 0 <= row < BLOCKS and 0 <= column < BLOCKS else OUTSIDE
            if block >= 0:
                color = palette[look(blocks, pool, x, y) if block >= POOL else block]
                for k in range(channels):
                    out[i, j, k] = (color >> (k * FIELD_BITS)) & FIELD_MASK
                continue
            total = 0
            for a in range(looks):
                y_part = i + (a + 0.5) / looks
                for b in range(looks):
                    x_part = j + (b + 0.5) / looks
                    total += palette[
                        look(
                            blocks,
                            pool,
                            corner_x + x_part * right_x + y_part * down_x,
                            corner_y + x_part * right_y + y_part * down_y,
                        )
                    ]
            for k in range(channels):
                out[i, j, k] = int(((total >> (k * FIELD_BITS)) & FIELD_MASK) * share + 0.5)
