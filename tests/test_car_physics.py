"""The compiled car against Gymnasium's own, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("Box2D")

from rhirl.simulators.car import state as s
from rhirl.simulators.car.bridge import read_car
from rhirl.simulators.car.parity import PHASES, measure_parity, phase_of, pilot
from rhirl.simulators.car.state import body_origin, joint_angle
from rhirl.simulators.car.track import TOUCHED_COLOR, UndrawnCarRacing, make_track
from rhirl.simulators.car_racing import CarRacingSimulator, CarState

SIMULATOR = CarRacingSimulator(threads=1)


def drive(env: UndrawnCarRacing, controls: np.ndarray) -> list[float]:
    return [env.step(action)[1] for action in SIMULATOR.action(controls)]


def lap(seed: int, steps: int, speed: float = 45.0) -> np.ndarray:
    """Let the pilot drive in the simulator: its controls (steps, 2)."""
    state, track, controls = SIMULATOR.reset(seed), make_track(seed), []
    for _ in range(steps):
        controls.append(pilot(state.car, track, speed))
        state = SIMULATOR.step(state, controls[-1])
    return np.array(controls)


def test_rollouts_from_real_driving_are_equal_to_the_bit() -> None:
    result = measure_parity(120, seed=1000)
    assert set(result) == set(PHASES)
    for phase in PHASES:
        assert result[phase]["rollouts"] >= 12
        assert result[phase]["equal_to_the_bit"] == result[phase]["rollouts"]
        assert result[phase]["worst_error"] == 0.0


def test_a_whole_episode_is_equal_to_the_bit() -> None:
    controls = lap(7, 300)
    cars = SIMULATOR.replay(7, controls)
    env: Any = UndrawnCarRacing()
    env.reset(seed=7)
    assert np.array_equal(read_car(env), cars[0])
    total = 0.0
    for control, car in zip(controls, cars[1:], strict=True):
        total += drive(env, control[None])[0]
        assert np.array_equal(read_car(env), car)
    assert env.tile_visited_count > 60
    assert SIMULATOR.drive(SIMULATOR.reset(7), controls[None]).rewards.sum() == pytest.approx(total, abs=1e-9)


def test_grip_follows_the_tiles_one_step_late() -> None:
    """The wheel feels the road only in the step after Box2D has found the tile under it."""
    env: Any = UndrawnCarRacing()
    env.reset(seed=3)
    drive(env, np.tile([0.0, 1.0], (40, 1)))
    wheel = s.WHEEL + s.ON_ROAD
    grass = SIMULATOR.snapshot(env)
    grass.car[[wheel + 4 * i for i in range(4)]] = 0.0
    road = SIMULATOR.snapshot(env)
    V = np.array([[[0.0, 1.0], [0.0, 1.0]]])
    after_road, after_grass = (SIMULATOR.drive(state, V, trail=True).cars[0] for state in (road, grass))
    assert after_grass[0, wheel] == 1.0
    speed = [np.hypot(car[0, s.VX], car[0, s.VY]) for car in (after_road, after_grass)]
    assert speed[1] < speed[0]


def test_a_car_left_alone_falls_asleep_when_gymnasiums_does() -> None:
    env: Any = UndrawnCarRacing()
    env.reset(seed=2)
    drive(env, np.zeros((20, 2)))
    state = SIMULATOR.snapshot(env)
    assert state.car[s.REST] > 0
    cars = SIMULATOR.drive(state, np.zeros((1, 20, 2)), trail=True).cars[0]
    awake = []
    for car in cars:
        drive(env, np.zeros((1, 2)))
        awake.append(env.car.hull.awake)
        assert np.array_equal(read_car(env), car)
    assert awake[0]
    assert not all(awake)


def test_leaving_the_field_ends_with_minus_one_hundred() -> None:
    state = SIMULATOR.reset(0)
    state.car[s.X :: s.BODY][:5] += 120.0
    state.car[[s.BODY * body + s.VX for body in range(5)]] = 90.0
    result = SIMULATOR.drive(state, np.zeros((1, 60, 2)))
    end = int(np.argmax(result.over[0]))
    assert result.rewards[0, end] == -100.0
    assert not result.rewards[0, end + 1 :].any()
    assert result.over[0, end:].all()


def test_visiting_the_last_tile_finishes_the_lap() -> None:
    car, tiles = SIMULATOR.replay(4, lap(4, 60))[-1], len(make_track(4).tiles)
    visited = [bool(int(car[s.VISITED + i // 32]) >> (i % 32) & 1) for i in range(tiles)]
    last = visited.index(False) + 3
    for i in set(range(tiles)) - {last}:
        car[s.VISITED + i // 32] = float(int(car[s.VISITED + i // 32]) | 1 << (i % 32))
    car[s.VISITED_COUNT] = tiles - 1
    state = CarState(np.array(4), car)
    assert not SIMULATOR.terminated(state)
    result = SIMULATOR.drive(state, np.tile([0.0, 0.5], (1, 30, 1)))
    end = int(np.argmax(result.over[0]))
    assert end > 5
    assert result.rewards[0, :end] == pytest.approx(-0.1, abs=1e-9)
    assert result.rewards[0, end] == pytest.approx(1000 / tiles - 0.1, abs=1e-9)
    assert not result.rewards[0, end + 1 :].any()
    assert SIMULATOR.terminated(CarState(state.seed, result.cars[0, -1]))


def test_tracks_are_gymnasiums() -> None:
    env: Any = UndrawnCarRacing()
    env.reset(seed=11)
    track = make_track(11)
    assert np.array_equal(track.line, np.array(env.track))
    assert np.array_equal(track.polygons, np.array([polygon for polygon, _ in env.road_poly]))
    assert len(track.tiles) == len(env.road) == (track.polygon_tile >= 0).sum()
    fresh = {tuple(color) for color in track.colors[track.polygon_tile >= 0]}
    assert fresh == {(102, 102, 102), (104, 104, 104), (107, 107, 107)}
    assert {tuple(color) for color in track.colors[track.polygon_tile < 0]} == {(255, 255, 255), (255, 0, 0)}
    assert tuple(env.road_color) == TOUCHED_COLOR


def test_names_of_the_state_mean_what_they_say() -> None:
    env: Any = UndrawnCarRacing()
    env.reset(seed=5)
    drive(env, np.tile([0.4, 0.6], (30, 1)))
    car = read_car(env)
    assert np.array_equal(body_origin(car), np.array(env.car.hull.position))
    for i, wheel in enumerate(env.car.wheels):
        assert np.array_equal(body_origin(car, 1 + i), np.array(wheel.position))
        assert joint_angle(car, i) == wheel.joint.angle
        assert car[s.WHEEL + 4 * i + s.OMEGA] == wheel.omega
        assert car[s.WHEEL + 4 * i + s.GAS] == wheel.gas
    assert car[s.TIME] == env.t
    assert car[s.REWARD] == env.reward
    assert phase_of(car) == "limit"
