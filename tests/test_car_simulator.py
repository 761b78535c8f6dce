"""CarRacing as a simulator: its protocol, its controls, and the running environment it reads."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("Box2D")

from rhirl.simulators.benchmark import Comparable
from rhirl.simulators.car import state as s
from rhirl.simulators.car.parity import pilot
from rhirl.simulators.car.render import View
from rhirl.simulators.car.track import UndrawnCarRacing, make_track
from rhirl.simulators.car_racing import CarRacingSimulator, CarState, TwoControls
from rhirl.simulators.protocol import EnvironmentSimulator

SMALL = View(factor=4, grey=True)
SIMULATOR = CarRacingSimulator(view=SMALL, threads=1)


@pytest.fixture(scope="module")
def driven() -> tuple[UndrawnCarRacing, CarState]:
    """An environment in the middle of the road, and its state."""
    env = UndrawnCarRacing()
    env.reset(seed=6)
    for _ in range(80):
        control = pilot(SIMULATOR.snapshot(env).car, make_track(6), 40.0)
        env.step(SIMULATOR.action(control))
    return env, SIMULATOR.snapshot(env)


def sequences(M: int, K: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (M, K, 2)).astype(np.float32)


def test_it_is_a_simulator() -> None:
    assert isinstance(SIMULATOR, EnvironmentSimulator)
    assert isinstance(SIMULATOR, Comparable)
    assert SIMULATOR.observation_shape == (24, 24, 1)
    assert CarRacingSimulator().observation_shape == (96, 96, 3)


def test_rollouts_show_what_stepping_shows(driven: tuple[UndrawnCarRacing, CarState]) -> None:
    _, state = driven
    V = sequences(3, 4)
    rollout = SIMULATOR.rollout(state, V)
    assert rollout.observations.shape == (3, 5, 24, 24, 1)
    assert rollout.observations.dtype == np.uint8
    assert rollout.valid.all()
    for j in range(3):
        walked = state
        for k in range(4):
            assert np.array_equal(rollout.observations[j, k], SIMULATOR.observe(walked))
            walked = SIMULATOR.step(walked, V[j, k])
        assert np.array_equal(rollout.observations[j, 4], SIMULATOR.observe(walked))


def test_threads_change_no_bit(driven: tuple[UndrawnCarRacing, CarState]) -> None:
    _, state = driven
    V = sequences(70, 6)
    one, three = (CarRacingSimulator(view=SMALL, threads=n) for n in (1, 3))
    assert np.array_equal(one.drive(state, V, trail=True).cars, three.drive(state, V, trail=True).cars)
    assert np.array_equal(one.rollout(state, V).observations, three.rollout(state, V).observations)


def test_planning_leaves_state_and_environment_alone(driven: tuple[UndrawnCarRacing, CarState]) -> None:
    env, state = driven
    before = state.car.copy()
    SIMULATOR.rollout(state, sequences(40, 5))
    assert np.array_equal(state.car, before)
    assert np.array_equal(SIMULATOR.snapshot(env).car, before)


def test_only_the_last_car_without_a_trail(driven: tuple[UndrawnCarRacing, CarState]) -> None:
    _, state = driven
    V = sequences(5, 7)
    short, long = SIMULATOR.drive(state, V), SIMULATOR.drive(state, V, trail=True)
    assert short.cars.shape == (5, 1, s.STATE_DIM)
    assert np.array_equal(short.cars[:, 0], long.cars[:, -1])
    assert np.array_equal(short.rewards, long.rewards)


@pytest.mark.parametrize(
    ("control", "action"),
    [((0.3, 0.7), (0.3, 0.7, 0.0)), ((-0.5, -0.25), (-0.5, 0.0, 0.25)), ((3.0, -3.0), (1.0, 0.0, 1.0))],
)
def test_two_controls_are_steering_and_one_pedal(
    control: tuple[float, float], action: tuple[float, float, float]
) -> None:
    assert SIMULATOR.action(np.array(control)) == pytest.approx(np.array(action))
    assert TwoControls(UndrawnCarRacing()).action(np.array(control)) == pytest.approx(np.array(action))


def test_the_made_environment_is_gymnasiums_and_does_what_is_simulated() -> None:
    env = SIMULATOR.make_env()
    assert env.spec is not None
    assert env.spec.id == "CarRacing-v3"
    env.reset(seed=21)
    state = SIMULATOR.snapshot(env)
    V = sequences(1, 8)
    drive = SIMULATOR.drive(state, V)
    rewards = [float(env.step(v)[1]) for v in V[0]]
    assert np.array_equal(drive.rewards[0], rewards)
    assert np.array_equal(SIMULATOR.snapshot(env).car, drive.cars[0, -1])
    env.close()


def test_a_missing_number_makes_a_rollout_invalid_and_a_step_an_error() -> None:
    state = SIMULATOR.reset(0)
    V = sequences(4, 3)
    V[2, 1, 0] = np.nan
    assert SIMULATOR.rollout(state, V).valid.tolist() == [True, True, False, True]
    with pytest.raises(ValueError, match="numbers in"):
        SIMULATOR.step(state, [np.nan, 0.0])


def test_a_track_without_a_seed_cannot_be_found_again() -> None:
    env = UndrawnCarRacing()
    env.reset(seed=1)
    env.reset()
    with pytest.raises(ValueError, match="reset with a seed"):
        SIMULATOR.snapshot(env)


@pytest.mark.parametrize(
    ("env", "error"),
    [
        (lambda: gymnasium.make("Pendulum-v1"), TypeError),
        (lambda: UndrawnCarRacing(continuous=False), ValueError),
        (lambda: UndrawnCarRacing(lap_complete_percent=0.5), ValueError),
        (UndrawnCarRacing, ValueError),
    ],
)
def test_other_environments_are_refused(env: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        SIMULATOR.snapshot(env())


def test_states_of_other_tasks_are_refused() -> None:
    vector: Any = np.zeros(8)
    with pytest.raises(ValueError, match="another task"):
        SIMULATOR.observe(vector)
    state = SIMULATOR.reset(0)
    with pytest.raises(ValueError, match="not finite"):
        SIMULATOR.drive(CarState(state.seed, np.full_like(state.car, np.nan)), sequences(1, 1))
    with pytest.raises(ValueError, match="shape"):
        SIMULATOR.drive(state, np.zeros((2, 3, 3)))


def test_restore_comes_close(driven: tuple[UndrawnCarRacing, CarState]) -> None:
    _, state = driven
    other = UndrawnCarRacing()
    other.reset(seed=9)
    SIMULATOR.restore(other, state)
    written = SIMULATOR.snapshot(other).car
    impulses = slice(s.JOINT, s.WHEEL)
    rest = [s.BODY * body + s.REST for body in range(s.BODIES)]
    same = np.ones(s.STATE_DIM, bool)
    same[impulses] = same[rest] = False
    assert written[same] == pytest.approx(state.car[same], abs=1e-5)
    V = np.tile([0.1, 0.3], (1, 15, 1))
    for action in SIMULATOR.action(V[0]):
        other.step(action)
    arrived = SIMULATOR.snapshot(other).car[[s.X, s.Y, s.ANGLE]]
    assert arrived == pytest.approx(SIMULATOR.drive(state, V).cars[0, -1, [s.X, s.Y, s.ANGLE]], abs=1e-2)
