"""Frames of CarRacing against Gymnasium's own, and what they must not show."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.simulators.car.bridge import read_car
from rhirl.simulators.car.render import View, frames, scene
from rhirl.simulators.car.render_indicators import SCORE
from rhirl.simulators.car.render_texture import BLOCKS, EDGE, FIELD, GRASS, MEADOW, OUTSIDE, POOL, TILE
from rhirl.simulators.car.state import ANGLE, OMEGA, PAINTED, REWARD, SPIN, STATE_DIM, VX, WHEEL, X, Y
from rhirl.simulators.car.track import Track, make_track

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
gymnasium = pytest.importorskip("gymnasium.envs.box2d.car_racing")


class Drive(NamedTuple):
    """Real driving: cars, and what the environment shows of them."""

    track: Track
    cars: NDArray[np.float64]
    frames: NDArray[np.uint8]


def drive(seed: int, wander: float, count: int = 60, every: int = 5) -> Drive:
    """Follow the road by eye from the first second on, the worse the more it wanders."""
    env: Any = gymnasium.CarRacing()
    env.reset(seed=seed)
    rng, drift, road = np.random.default_rng(seed), 0.0, np.array(env.track)[:, 2:4]
    cars, shown = [], []
    for t in range(50 + count * every):
        hull = env.car.hull
        ahead = road[(np.argmin(np.sum((road - hull.position) ** 2, axis=1)) + 5) % len(road)]
        side, forward = (np.array(hull.GetLocalPoint(ahead.tolist()))).tolist()
        drift = 0.95 * drift + wander * rng.normal()
        speed = np.hypot(*hull.linearVelocity)
        steer = np.clip(2.0 * np.arctan2(side, forward) + drift, -1, 1)
        limit = 35 + 30 * np.sin(t / 70)
        action = np.array([steer, 0.6 if speed < limit else 0.0, 0.3 if speed > limit + 10 else 0.0])
        frame = env.step(action)[0]
        if t >= 50 and t % every == 0:
            cars.append(read_car(env))
            shown.append(frame)
    return Drive(make_track(seed), np.array(cars), np.array(shown))


@pytest.fixture(scope="module")
def drives() -> list[Drive]:
    return [drive(3, wander=0.02), drive(27, wander=0.2)]


def without_score(shown: NDArray[np.uint8]) -> NDArray[np.int64]:
    masked = shown.astype(np.int64)
    masked[:, SCORE[0], SCORE[1]] = 0
    return masked


def test_frames_of_real_driving_are_gymnasiums(drives: list[Drive]) -> None:
    for one in drives:
        error = np.abs(frames(one.track, one.cars) - without_score(one.frames))
        assert error.mean() <= 0.11
        assert np.mean(error.max(axis=-1) > 16) <= 0.0007
        assert error[:, 84:].mean() <= 0.02  # the indicators are drawn by formula
        assert error[:, 64:78, 44:52].max() <= 45  # the car: no wheel is ever missing or misplaced


def test_the_score_is_never_drawn(drives: list[Drive]) -> None:
    for one in drives:
        drawn = frames(one.track, one.cars)
        assert not drawn[:, SCORE[0], SCORE[1]].any()
        assert one.frames[:, SCORE[0], SCORE[1]].any()
        richer = one.cars.copy()
        richer[:, REWARD] += 500.0
        np.testing.assert_array_equal(frames(one.track, richer), drawn)


def test_a_coarser_view_is_the_mean_of_the_finer(drives: list[Drive]) -> None:
    track, cars, _ = drives[0]
    fine = frames(track, cars).astype(np.float64)
    for factor in (2, 3, 4):
        mean = fine.reshape(len(fine), 96 // factor, factor, 96 // factor, factor, 3).mean(axis=(2, 4))
        coarse = frames(track, cars, View(factor))
        assert coarse.shape[1:] == View(factor).shape == (96 // factor, 96 // factor, 3)
        assert np.abs(coarse - mean).mean() <= 0.6


def test_grey_is_the_luma_of_colour(drives: list[Drive]) -> None:
    track, cars, _ = drives[0]
    luma = frames(track, cars, View(2)) @ np.array([0.299, 0.587, 0.114])
    grey = frames(track, cars, View(2, grey=True))
    assert grey.shape[1:] == (48, 48, 1)
    assert np.abs(grey[..., 0] - luma).max() <= 3


def test_a_touched_tile_loses_its_shade() -> None:
    track = make_track(3)
    car = track.start.copy()
    car[PAINTED:] = 0
    fresh = frames(track, car[None])[0]
    car[PAINTED:] = 2.0**32 - 1
    touched = frames(track, car[None])[0]
    road = (fresh[:64] == fresh[:64, :, :1]).all(axis=-1) & (fresh[:64, :, 0] < 110)
    assert set(np.unique(fresh[:64][road])) >= {100, 102, 105}
    assert set(np.unique(touched[:64][road])) == {100}
    assert (fresh[:64][~road] == touched[:64][~road]).mean() > 0.9


def test_indicators_show_speed_spin_steering_and_yaw() -> None:
    track = make_track(3)
    car = track.start.copy()
    car[[VX, SPIN]] = 0.0
    car[WHEEL + OMEGA : WHEEL + 16 : 4] = 0.0

    def bar(**changes: float) -> NDArray[np.uint8]:
        moving = car.copy()
        for name, value in changes.items():
            moving[int(name[1:])] = value
        return frames(track, moving[None])[0, 84:]

    still = bar()
    assert bar(**{f"_{VX}": 50.0})[:, 12:15, 0].sum() > still[:, 12:15, 0].sum() + 1500
    assert bar(**{f"_{WHEEL + OMEGA}": 100.0})[:, 17:19, 2].sum() > 1000
    assert bar(**{f"_{SPIN}": 1.0})[:, 64:72, 0].sum() > 1000  # to the left of its base at column 72
    assert bar(**{f"_{SPIN}": -1.0})[:, 72:80, 0].sum() > 1000
    assert bar(**{f"_{7 + ANGLE}": car[ANGLE] + 0.3})[:, 41:48, 1].sum() > 1000


def test_the_texture_is_plain_where_nothing_changes() -> None:
    blocks = scene(make_track(3)).texture.blocks
    assert blocks.shape == (BLOCKS, BLOCKS)
    assert blocks[0, 0] == OUTSIDE
    middle = BLOCKS // 2
    assert blocks[middle + 8, middle + 8] == GRASS  # patches are 16.67 m wide and begin at the origin
    assert blocks[middle + 8, middle - 8] == MEADOW
    assert blocks[middle + 8, middle] == EDGE
    inside = blocks[
        int(middle - FIELD) + 2 : int(middle + FIELD) - 1, int(middle - FIELD) + 2 : int(middle + FIELD) - 1
    ]
    assert np.mean((inside >= 0) & (inside < POOL)) > 0.8
    assert set(np.unique(inside[(inside >= TILE) & (inside < POOL)])) <= set(
        range(TILE, TILE + len(make_track(3).tiles))
    )


def test_a_car_outside_the_field_sees_nothing_and_breaks_nothing() -> None:
    track = make_track(3)
    cars = np.zeros((4, STATE_DIM))
    cars[:, X] = [1e9, -FIELD - 1, np.nan, 0.0]
    cars[:, Y] = [0.0, 0.0, 0.0, np.inf]
    drawn = frames(track, cars)
    assert drawn.shape == (4, 96, 96, 3)
    assert not drawn[:, :60].any()


@pytest.mark.parametrize(("settings", "complaint"), [({"factor": 5}, "factor"), ({"looks": 4}, "looks")])
def test_views_that_cannot_be_drawn_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        View(**settings)
