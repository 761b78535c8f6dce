"""The car in a frame: four wheels with the stripe that shows them rolling, and the hull over them.

The camera turns with the hull, which therefore looks the same in every frame; only the wheels move. Both are
painted as Gymnasium does, at whole pixels of its 1000 x 800, and each painted pixel adds its share to the pixels of
the frame.

`Sprite` holds what never changes: which painted pixels the hull covers, how much of each pixel of the frame that
is, and how painted rows and columns fall into those of the frame.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import kernel, outer_kernel
from rhirl.simulators.car.render_window import CAR_X, CAR_Y, FRAME, PAINTED_H, PAINTED_W, ZOOM
from rhirl.simulators.car.state import ANGLE, BODY, PHASE, WHEEL, WHEELS, body_frame

SIZE = 0.02
HALF_WIDTH, RADIUS = 14 * SIZE, 27 * SIZE
STRIPE = 1.2
"""Angle of the wheel that its stripe covers (rad)."""
HULL_PARTS = (
    ((60, 110), (60, 130), (-60, 130), (-60, 110)),
    ((20, 20), (15, 120), (-15, 120), (-20, 20)),
    ((50, -40), (50, -10), (25, 20), (-25, 20), (-50, -10), (-50, -40), (-20, -90), (20, -90)),
    ((50, -120), (50, -90), (-50, -90), (-50, -120)),
)
"""Corners of the hull in units of SIZE, in Box2D's order: from the lower right, counter-clockwise."""
LEFT, TOP, WIDE, HIGH = 456, 544, 88, 112
"""The part of the painted picture where the car is."""
TORN_OFF = 2.5
"""A wheel this far from the hull (m) belongs to a car that no physics made; it is not drawn."""
TYRE, WHITE_STRIPE, HULL_PAINT = range(3)


class Sprite(NamedTuple):
    """The car's unchanging parts, for pixels of one size."""

    hull: NDArray[np.bool_]
    """(HIGH, WIDE) painted pixels that the hull covers."""
    cover: NDArray[np.float32]
    """(h, w) share of the frame's pixels that the hull covers."""
    row: NDArray[np.int64]
    """(HIGH,) row of `cover` in which a painted row begins."""
    row_share: NDArray[np.float32]
    """(HIGH, 2) its share of that row and of the next."""
    column: NDArray[np.int64]
    """(WIDE,)"""
    column_share: NDArray[np.float32]
    """(WIDE, 2)"""
    first_row: int
    """Row of the frame where `cover` begins."""
    first_column: int


@cache
def make_sprite(factor: int) -> Sprite:
    """Paint the hull, for frames whose pixels are `factor` times Gymnasium's."""
    hull = np.zeros((HIGH, WIDE), np.bool_)
    for part in HULL_PARTS:
        corners = np.array(part, np.float64) * SIZE * ZOOM + (CAR_X, PAINTED_H - CAR_Y)
        _mark(np.trunc(corners), hull)
    row, row_share, first_row = _shares(TOP, HIGH, PAINTED_H / FRAME * factor)
    column, column_share, first_column = _shares(LEFT, WIDE, PAINTED_W / FRAME * factor)
    cover = np.zeros((row[-1] + 2, column[-1] + 2), np.float32)
    for y, x in np.argwhere(hull):
        share = np.outer(row_share[y], column_share[x])
        cover[row[y] : row[y] + 2, column[x] : column[x] + 2] += share
    return Sprite(hull, cover, row, row_share, column, column_share, first_row, first_column)


def _shares(start: int, count: int, size: float) -> tuple[NDArray[np.int64], NDArray[np.float32], int]:
    """Spread painted lines over lines of the frame, each `size` painted ones thick."""
    edges = np.arange(start, start + count + 1) / size
    first = np.floor(edges[:-1] + 1e-9)
    inside = np.minimum(edges[1:], first + 1) - edges[:-1]
    share = np.stack([inside, np.maximum(edges[1:] - (first + 1), 0.0)], axis=-1)
    return (first - first[0]).astype(np.int64), share.astype(np.float32), int(first[0])


@outer_kernel
def _mark(corners: NDArray[np.float64], hull: NDArray[np.bool_]) -> None:
    """Mark the painted pixels of a polygon in (HIGH, WIDE)."""
    low = int(corners[:, 1].min())
    spans = _spans(corners)
    for n in range(len(spans)):
        hull[PAINTED_H - 1 - (low + n) - TOP, spans[n, 0] - LEFT : spans[n, 1] - LEFT + 1] = True


@kernel
def _spans(corners: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first and last pixel of each row of a convex polygon (n, 2) with whole corners.

    Pygame rounds the first border it meets in a row down and the second up, whichever of them is on the left, so
    that the order of the corners matters.
    """
    low, high = int(corners[:, 1].min()), int(corners[:, 1].max())
    spans = np.empty((high - low + 1, 2), np.int64)
    if low == high:
        spans[0, 0], spans[0, 1] = corners[:, 0].min(), corners[:, 0].max()
        return spans
    for y in range(low, high + 1):
        first, last, met = np.inf, -np.inf, 0
        for e in range(len(corners)):
            x1, y1 = corners[e - 1]
            x2, y2 = corners[e]
            if min(y1, y2) <= y < max(y1, y2) or (y == high and y1 != y2 and max(y1, y2) == high):
                x = x1 + (y - y1) * (x2 - x1) / (y2 - y1)
                x = np.floor(x) if met % 2 == 0 else np.ceil(x)
                first, last, met = min(first, x), max(last, x), met + 1
        spans[y - low, 0], spans[y - low, 1] = first, last
    return spans


@kernel
def _paint(corners: NDArray[np.float64], sprite: Sprite, gain: float, cover: NDArray[np.float32]) -> None:
    """Add a polygon, where the hull does not hide it, to the cover (h, w) of the frame's pixels."""
    low = int(corners[:, 1].min())
    spans = _spans(corners)
    for n in range(len(spans)):
        y = PAINTED_H - 1 - (low + n) - TOP
        i, first, last = sprite.row[y], spans[n, 0] - LEFT, spans[n, 1] - LEFT
        here, below = gain * sprite.row_share[y, 0], gain * sprite.row_share[y, 1]
        for x in range(first, last + 1):
            if not sprite.hull[y, x]:
                j = sprite.column[x]
                this, following = sprite.column_share[x, 0], sprite.column_share[x, 1]
                cover[i, j] += here * this
                cover[i, j + 1] += here * following
                cover[i + 1, j] += below * this
                cover[i + 1, j + 1] += below * following


@kernel
def draw_car(
    state: NDArray[np.float64], sprite: Sprite, colors: NDArray[np.float32], out: NDArray[np.uint8]
) -> None:
    """Draw one car (STATE_DIM,) into a frame; colors (3, channels) of tyres, stripes and hull."""
    h, w = sprite.cover.shape
    tyre, stripe = np.zeros((h, w), np.float32), np.zeros((h, w), np.float32)
    hull = body_frame(state, 0)
    cx, cy, s, c = float(hull.px), float(hull.py), np.sin(state[ANGLE]), np.cos(state[ANGLE])
    quad = np.empty((4, 2))
    for n in range(WHEELS):
        body = body_frame(state, n + 1)
        dx, dy = float(body.px) - cx, float(body.py) - cy
        if not (abs(dx) < TORN_OFF and abs(dy) < TORN_OFF):
            continue
        turn = state[BODY * (n + 1) + ANGLE] - state[ANGLE]
        place = (c * dx + s * dy, c * dy - s * dx, np.sin(turn), np.cos(turn))
        _corners(place, -RADIUS, RADIUS, HALF_WIDTH, quad)
        _paint(quad, sprite, 1.0, tyre)
        phase = state[WHEEL + 4 * n + PHASE]
        s1, s2, c1, c2 = np.sin(phase), np.sin(phase + STRIPE), np.cos(phase), np.cos(phase + STRIPE)
        if s1 > 0 and s2 > 0:
            continue
        c1 = np.sign(c1) if s1 > 0 else c1
        c2 = np.sign(c2) if s2 > 0 else c2
        _corners(place, RADIUS * c1, RADIUS * c2, -HALF_WIDTH, quad)
        _paint(quad, sprite, 1.0, stripe)
        _paint(quad, sprite, -1.0, tyre)
    for i in range(h):
        for j in range(w):
            red, black, white = sprite.cover[i, j], tyre[i, j], stripe[i, j]
            if red + black + white > 0:
                row, column = sprite.first_row + i, sprite.first_column + j
                left = 1 - red - black - white
                for k in range(out.shape[2]):
                    mixed = red * colors[HULL_PAINT, k] + black * colors[TYRE, k] + white * colors[WHITE_STRIPE, k]
                    out[row, column, k] = int(left * out[row, column, k] + mixed + 0.5)


@kernel
def _corners(
    place: tuple[float, float, float, float], y0: float, y1: float, x0: float, quad: NDArray[np.float64]
) -> None:
    """Set the painted corners (4, 2) of a part of a wheel at place (x, y, sin, cos) in the frame of the hull.

    They run (x0, y0), (x0, y1), (−x0, y1), (−x0, y0) for a tyre, as Box2D has it, and start sideways for a stripe.
    """
    x, y, s, c = place
    sideways = x0 < 0
    for n in range(4):
        vx = x0 if n == 0 or n == (3 if sideways else 1) else -x0
        vy = y0 if n == 0 or n == (1 if sideways else 3) else y1
        quad[n, 0] = np.trunc((x + c * vx - s * vy) * ZOOM + CAR_X)
        quad[n, 1] = np.trunc((y + s * vx + c * vy) * ZOOM + PAINTED_H - CAR_Y)
