"""The driver that demonstrates CarRacing."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("Box2D")

from rhirl.demos import DemonstrationError, run_episode
from rhirl.demos.bundled import DATA
from rhirl.demos.recordings import SUFFIX
from rhirl.experiments.driver import Driving, DrivingExpert, along, trajectory_cost
from rhirl.planning import Planner
from rhirl.simulators.car import state as s
from rhirl.simulators.car.render import View
from rhirl.simulators.car.track import UndrawnCarRacing, make_track
from rhirl.simulators.car_racing import CarRacingSimulator, TwoControls
from rhirl.tasks import get_task
from rhirl.tasks.car_racing import CAR_RACING, car_demos, car_recordings

SMALL = Driving(planner=Planner(K=25, M=32, beta=0.2, ess=0.1, knots=5))


def test_it_drives_and_stays_on_the_road() -> None:
    env, expert = TwoControls(UndrawnCarRacing()), DrivingExpert(SMALL, threads=1)
    episode = run_episode(env, expert, horizon=150, noise=0.0, seed=3)
    tiles = len(make_track(3).tiles)
    assert episode.total > 30 * 1000 / tiles
    cars = CarRacingSimulator(threads=1).replay(3, episode.controls)
    assert cars[:, s.WHEEL + s.ON_ROAD].mean() > 0.9
    again = run_episode(env, DrivingExpert(SMALL, threads=1), horizon=20, noise=0.0, seed=3)
    assert np.array_equal(again.controls, episode.controls[:20])


def test_cars_are_found_along_the_road() -> None:
    track = make_track(8)
    car = track.start[None].copy()
    tiles, astray = along(car, track, 0)
    assert tiles.tolist() == [0]
    assert astray.tolist() == [0.0]
    far = car.copy()
    far[0, [s.X, s.Y]] = track.line[20, 2:] + 30.0 * np.array(
        [np.cos(track.line[20, 1]), np.sin(track.line[20, 1])]
    )
    tiles, astray = along(far, track, 12)
    assert 0 <= tiles[0] <= 20
    assert 5.0 < astray[0] <= 30.0 - 40 / 6 + 0.2


def test_the_cost_is_the_reward_and_what_is_added_to_it() -> None:
    simulator, track = CarRacingSimulator(threads=1), make_track(5)
    V = np.random.default_rng(0).uniform(-1, 1, (6, 12, 2)).astype(np.float32)
    V[0] = [0.0, 1.0]
    V[1] = [0.0, -1.0]
    drive = simulator.drive(simulator.reset(5), V, trail=True)
    plain = Driving(off_road=0.0, speeding=0.0, progress=0.0, way_back=0.0)
    assert trajectory_cost(drive, track, 0, plain) == pytest.approx(-drive.rewards.sum(axis=1))
    S = trajectory_cost(drive, track, 0, Driving(top_speed=1.0))
    passed, astray = along(drive.cars[:, -1], track, 0)
    speed = np.hypot(drive.cars[..., s.VX], drive.cars[..., s.VY])
    extra = 0.1 * np.maximum(0, speed - 1).sum(axis=1) - 1000 / len(track.tiles) * (0.3 * passed - 0.1 * astray)
    off = 1 - drive.cars[..., [s.WHEEL + 4 * i + s.ON_ROAD for i in range(4)]].mean(axis=-1)
    expected = -drive.rewards.sum(axis=1) + extra + 0.5 * off.sum(axis=1)
    assert expected == pytest.approx(S)


BUNDLED = [float(path.name.split("noise")[1].removesuffix(SUFFIX)) for path in DATA.glob(f"car_racing*{SUFFIX}")]


@pytest.mark.parametrize("noise", BUNDLED)
def test_bundled_recordings_play_to_the_byte(noise: float) -> None:
    recordings = car_recordings(noise)
    assert recordings.meta.noise == noise
    assert len(set(recordings.meta.seeds)) == len(recordings)
    simulator = CarRacingSimulator(threads=1)
    recordings.take(1).check(simulator.play)
    seed, controls = recordings.episode(1)
    total = simulator.drive(simulator.reset(seed), controls[None]).rewards.sum()
    assert total == pytest.approx(recordings.meta.returns[1], abs=1e-6)


def test_demonstrations_are_drawn_in_the_view_asked_for() -> None:
    demos = car_demos(CarRacingSimulator(view=View(factor=4, grey=True)).play, episodes=2)
    assert demos.observations.shape == (2, CAR_RACING.T + 1, 24, 24, 1)
    assert demos.observations.dtype == np.uint8
    assert demos.meta.task == "car_racing"


def test_a_noise_level_nobody_recorded_is_named() -> None:
    with pytest.raises(DemonstrationError, match="σ = 7"):
        car_recordings(7.0)


def test_the_tasks_environment_is_gymnasiums_with_two_controls() -> None:
    env = CAR_RACING.make_env()
    assert env.spec is not None
    assert env.spec.id == CAR_RACING.env_id
    assert env.action_space.shape == (CAR_RACING.control_dim,)
    env.close()


def test_scoring_draws_nothing_and_pays_the_same() -> None:
    task = get_task("car_racing")
    drawn, scored = task.make_env(), task.make_scored_env()
    controls = np.random.default_rng(5).uniform([-0.3, 0.2], [0.3, 1.0], (40, 2)).astype(np.float32)
    paid = []
    for env in (drawn, scored):
        env.reset(seed=11)
        paid.append([env.step(u)[1:4] for u in controls])
    assert paid[0] == paid[1]
    assert drawn.step(controls[0])[0].shape == (96, 96, 3)
    assert scored.step(controls[0])[0] is None
