"""Frames of a car on its track: Gymnasium's `state_pixels`, some fiftyfold faster.

`frames(track, states)` draws what the environment shows after the first second, when its camera has zoomed in. The
camera here is always zoomed in: the first 49 steps of an episode look different in Gymnasium, and learners never
see those pictures. Nor do they see the score, which is the sum of rewards.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rhirl.simulators.box2d.settings import outer_kernel
from rhirl.simulators.car.render_car import Sprite, draw_car, make_sprite
from rhirl.simulators.car.render_indicators import draw_indicators
from rhirl.simulators.car.render_texture import TILE, Texture, draw_texture
from rhirl.simulators.car.render_window import FIELD_BITS, FRAME, PAINTED_H, PAINTED_W, ZOOM, draw_ground
from rhirl.simulators.car.state import ANGLE, PAINTED, body_frame, has_tile
from rhirl.simulators.car.track import TOUCHED_COLOR, Track

LOSS = 2
"""Gymnasium's shrinking darkens every colour but black by two levels."""
GROW = 0.032
"""Gymnasium's smooth outlines widen polygons by about half a painted pixel (m)."""
PLAIN_COLORS = ((0, 0, 0), (102, 204, 102), (102, 230, 102), (255, 255, 255), (255, 0, 0))
CAR_COLORS = ((0, 0, 0), (77, 77, 77), (204, 0, 0))
BAR_COLORS = ((255, 255, 255), (0, 0, 255), (51, 0, 255), (0, 255, 0), (255, 0, 0))
LUMA = (0.299, 0.587, 0.114)
KEPT_TRACKS = 64


@dataclass(frozen=True)
class View:
    """How frames are drawn. `View()` is Gymnasium's 96 x 96 in colour."""

    factor: int = 1
    """Side of a pixel in pixels of Gymnasium's frame: 2 draws 48 x 48. One of 1, 2, 3, 4, 6, 12."""
    grey: bool = False
    """One channel, the luma of the three."""
    looks: int = 13
    """Points of a pixel over which an edge is averaged: 1, 2, 3, 5, 8 or 13."""

    def __post_init__(self) -> None:
        if self.factor not in (1, 2, 3, 4, 6, 12):
            raise ValueError(f"factor must be 1, 2, 3, 4, 6 or 12, so that pixels fit the frame, not {self.factor}")
        if self.looks not in (1, 2, 3, 5, 8, 13):
            raise ValueError(f"looks must be 1, 2, 3, 5, 8 or 13, not {self.looks}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a frame."""
        return FRAME // self.factor, FRAME // self.factor, 1 if self.grey else 3


class Scene(NamedTuple):
    """All that the frames of one track share."""

    texture: Texture
    sprite: Sprite
    fresh: NDArray[np.int64]
    """(TILE + tiles,) packed colours before any tile is touched."""
    touched: int
    """Packed colour of a touched tile."""
    car: NDArray[np.float32]
    """(3, channels)"""
    bars: NDArray[np.float32]
    """(5, channels)"""
    factor: int
    looks: int


_scenes: OrderedDict[tuple[int, View], Scene] = OrderedDict()


def scene(track: Track, view: View | None = None) -> Scene:
    """Draw the texture of a track, or take it from the last few drawn."""
    view = view or View()
    key = (track.seed, view)
    if key not in _scenes:
        _scenes[key] = _make_scene(track, view)
        while len(_scenes) > KEPT_TRACKS:
            _scenes.popitem(last=False)
    _scenes.move_to_end(key)
    return _scenes[key]


def frames(track: Track, states: NDArray[np.float64], view: View | None = None) -> NDArray[np.uint8]:
    """Draw cars (N, STATE_DIM) on their track: (N, *view.shape)."""
    out = np.empty((len(states), *(view or View()).shape), np.uint8)
    draw_frames(scene(track, view), states, out)
    return out


@outer_kernel
def draw_frames(scene: Scene, states: NDArray[np.float64], out: NDArray[np.uint8]) -> None:
    """Draw cars (N, STATE_DIM) into frames (N, h, w, channels)."""
    palette = np.empty_like(scene.fresh)
    for n in range(len(states)):
        state = states[n]
        palette[:] = scene.fresh
        for i in range(len(palette) - TILE):
            if has_tile(state, PAINTED, i):
                palette[TILE + i] = scene.touched
        hull = body_frame(state, 0)
        place = float(hull.px), float(hull.py), state[ANGLE]
        draw_ground(scene.texture.blocks, scene.texture.pool, palette, place, scene.factor, scene.looks, out[n])
        draw_car(state, scene.sprite, scene.car, out[n])
        draw_indicators(state, scene.factor, scene.bars, out[n])


def _make_scene(track: Track, view: View) -> Scene:
    pixel = np.hypot(PAINTED_W, PAINTED_H) * view.factor / (FRAME * ZOOM)
    tiles = track.colors[track.polygon_tile >= 0]
    order = np.argsort(track.polygon_tile[track.polygon_tile >= 0])
    return Scene(
        draw_texture(track, pixel / 2, GROW),
        make_sprite(view.factor),
        _packed(_shrunk(np.concatenate([PLAIN_COLORS, tiles[order]]), view.grey)),
        int(_packed(_shrunk([TOUCHED_COLOR], view.grey))[0]),
        _shrunk(CAR_COLORS, view.grey),
        _shrunk(BAR_COLORS, view.grey),
        view.factor,
        view.looks,
    )


def _shrunk(colors: ArrayLike, grey: bool) -> NDArray[np.float32]:
    """Return colours (n, 3) as they look in a frame: (n, channels)."""
    seen = np.maximum(np.asarray(colors, np.float32) - LOSS, 0)
    return (seen @ np.asarray(LUMA, np.float32))[:, None] if grey else seen


def _packed(colors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Put the channels of each colour into the fields of one integer."""
    return np.rint(colors).astype(np.int64) @ (1 << (FIELD_BITS * np.arange(colors.shape[1])))
