"""The window a frame opens on the ground: turned with the car, which always drives upwards, low in the middle.

Gymnasium paints 1000 x 800 pixels at 16.2 pixels a metre and shrinks them to 96 x 96, so that a pixel of the frame
is 0.64 m wide and 0.51 m high and shows the mean colour of that rectangle.

    world = hull + R(angle) · ((X − 500)/zoom, (600 − Y)/zoom),   X, Y: painted pixels from the top left

How the mean is taken depends on the block of the texture under the middle of the pixel: where it is plain, one look
is enough; borders of the grass are straight lines whose share of the pixel has a formula; everything else, the
edges of the road above all, is looked at in several points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import inline_kernel, kernel
from rhirl.simulators.car.render_texture import BLOCKS, EDGE, FIELD, GRASS, MEADOW, PATCH, POOL, ground, look

FRAME = 96
PAINTED_W, PAINTED_H = 1000, 800
ZOOM = 2.7 * 6.0
"""Pixels painted per metre, once the first second's zoom is over."""
CAR_X, CAR_Y = 500.0, 600.0
"""Where Gymnasium paints the origin of the hull."""
BAR_TOP = 84
"""First row of the frame that belongs to the indicators."""
LATTICE = np.array([0, 1, 1, 2, 0, 3, 0, 0, 5, 0, 0, 0, 0, 8])
"""Points (n/N, n · LATTICE[N]/N mod 1) of a pixel, N a Fibonacci number, leave no line through it unseen."""

# Colours add up all at once, as 16-bit fields of one integer.
FIELD_BITS = 16
FIELD_MASK = (1 << FIELD_BITS) - 1


@kernel
def draw_ground(
    blocks: NDArray[np.int32],
    pool: NDArray[np.uint16],
    palette: NDArray[np.int64],
    place: tuple[float, float, float],
    factor: int,
    looks: int,
    out: NDArray[np.uint8],
) -> None:
    """Draw the ground into a frame, down to the indicators.

    Args:
        blocks: The texture's blocks.
        pool: The texture's pool.
        palette: Colour of each number, its channels packed.
        place: x, y and angle of the hull.
        factor: Side of a pixel of `out`, in pixels of Gymnasium's frame.
        looks: In how many points to look at a pixel on an edge.
        out: (96/factor, 96/factor, channels).
    """
    px, py, angle = place
    if not (abs(px) < FIELD and abs(py) < FIELD):
        out[:] = 0
        return
    s, c = np.sin(angle), np.cos(angle)
    width, height = factor * PAINTED_W / (FRAME * ZOOM), factor * PAINTED_H / (FRAME * ZOOM)
    right_x, right_y = width * c, width * s
    down_x, down_y = height * s, -height * c
    left, top = -CAR_X / ZOOM, CAR_Y / ZOOM
    corner_x = px + c * left - s * top + 0.5 * (right_x + down_x)
    corner_y = py + s * left + c * top + 0.5 * (right_y + down_y)
    step_x, step_y = np.empty(looks), np.empty(looks)
    for n in range(looks):
        across, along = (n + 0.5) / looks - 0.5, ((n * LATTICE[looks] + 0.5) / looks) % 1.0 - 0.5
        step_x[n] = across * right_x + along * down_x
        step_y[n] = across * right_y + along * down_y
    colored, meadow = out.shape[2] == 3, 256 * palette[MEADOW]
    for i in range(BAR_TOP // factor):
        for j in range(out.shape[1]):
            x = corner_x + j * right_x + i * down_x
            y = corner_y + j * right_y + i * down_y
            block = blocks[np.uint32(y + BLOCKS / 2), np.uint32(x + BLOCKS / 2)]
            if block >= 0:
                color = palette[block if block < POOL else look(blocks, pool, x, y)]
                out[i, j, 0] = color & FIELD_MASK
                if colored:
                    out[i, j, 1] = (color >> FIELD_BITS) & FIELD_MASK
                    out[i, j, 2] = color >> 2 * FIELD_BITS
            elif block == EDGE:
                if abs(x) > FIELD - 1.0 or abs(y) > FIELD - 1.0:
                    total, share = palette[ground(x, y)], 1.0
                else:
                    grass = _even_share(x, right_x, down_x) * _even_share(y, right_y, down_y)
                    total, share = (
                        meadow + int(grass * 256.0 + 0.5) * (palette[GRASS] - palette[MEADOW]),
                        1.0 / 256.0,
                    )
                _put(total, share, out, i, j)
            else:
                total = np.int64(0)
                for n in range(looks):
                    total += palette[look(blocks, pool, x + step_x[n], y + step_y[n])]
                _put(total, 1.0 / looks, out, i, j)


@inline_kernel
def _even_share(x: float, side: float, other_side: float) -> float:
    """Return the share of a pixel around x that lies in even strips of width PATCH.

    Seen along one axis, a pixel is the sum of two uniform variables as wide as the projections of its sides; the
    share beyond a line is that sum's distribution function.
    """
    line = int(x * (1.0 / PATCH) + 24.5) - 24
    d = x - line * PATCH
    a, b = 0.5 * abs(side), 0.5 * abs(other_side)
    short, long = min(a, b), max(a, b)
    if abs(d) <= long - short:
        beyond = 0.5 + 0.5 * d / long
    else:
        tail = max(long + short - abs(d), 0.0)
        tail = tail * tail / (8.0 * long * short)
        beyond = 1.0 - tail if d > 0 else tail
    return beyond if line & 1 == 0 else 1.0 - beyond


@inline_kernel
def _put(color: int, gain: float, out: NDArray[np.uint8], i: int, j: int) -> None:
    """Unpack a sum of colours into a pixel."""
    out[i, j, 0] = int((color & FIELD_MASK) * gain + 0.5)
    if out.shape[2] == 3:
        out[i, j, 1] = int(((color >> FIELD_BITS) & FIELD_MASK) * gain + 0.5)
        out[i, j, 2] = int(((color >> 2 * FIELD_BITS) & FIELD_MASK) * gain + 0.5)
