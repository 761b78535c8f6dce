"""The car that holds its controls: the same car, seen less often; and the pictures of its report."""

from __future__ import annotations

import io
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

from rhirl.costs import CNN, Cost, Pixels
from rhirl.experiments.agents import PlanningAgent, expert_agent
from rhirl.experiments.driver import DrivingExpert
from rhirl.report.car_racing import animation, cost_map, place_car
from rhirl.simulators import EnvironmentSimulator, InvertibleSimulator
from rhirl.simulators.car.render import View
from rhirl.simulators.car.state import ANGLE, VX, VY, body_origin
from rhirl.simulators.car.track import make_track
from rhirl.simulators.car_held import HeldCarRacingSimulator
from rhirl.simulators.car_racing import CarRacingSimulator
from rhirl.tasks import get_task

VIEW = View(4, grey=True, looks=5)
RNG = np.random.default_rng(0)


def held() -> HeldCarRacingSimulator:
    return HeldCarRacingSimulator(hold=3, view=VIEW, threads=1)


def test_a_held_rollout_is_the_plain_one_seen_less_often() -> None:
    simulator, plain = held(), CarRacingSimulator(view=VIEW, threads=1)
    assert isinstance(simulator, EnvironmentSimulator)
    assert isinstance(simulator, InvertibleSimulator)
    state = simulator.reset(3)
    V = RNG.uniform(-1, 1, (5, 4, 2)).astype(np.float32)
    V[4, 2, 0] = np.nan
    rollout = simulator.rollout(state, V)
    every = plain.rollout(state, V.repeat(3, axis=1))
    np.testing.assert_array_equal(rollout.observations, every.observations[:, ::3])
    np.testing.assert_array_equal(rollout.valid, [True, True, True, True, False])


def test_a_held_step_is_several_plain_ones() -> None:
    simulator, plain = held(), CarRacingSimulator(view=VIEW, threads=1)
    state = expected = simulator.reset(3)
    for control in RNG.uniform(-1, 1, (4, 2)).astype(np.float32):
        state = simulator.step(state, control)
        for _ in range(3):
            expected = plain.step(expected, control)
    np.testing.assert_array_equal(state.car, expected.car)
    with pytest.raises(ValueError, match="numbers"):
        simulator.step(state, np.array([np.nan, 0.0]))


def test_a_frame_that_was_played_leads_back_to_its_state() -> None:
    simulator = held()
    controls = np.tile(np.array([0.1, 0.8], np.float32), (30, 1))
    frames = simulator.play(3, controls)
    assert frames.shape == (11, *VIEW.shape)
    car = CarRacingSimulator(view=VIEW, threads=1).replay(3, controls)[21]
    found = simulator.state_from_observation(frames[7])
    assert int(found.seed) == 3
    np.testing.assert_array_equal(found.car, car)
    with pytest.raises(ValueError, match="played"):
        simulator.state_from_observation(np.zeros(VIEW.shape, np.uint8))


def test_an_agent_holds_its_control_as_long_as_the_simulator_does() -> None:
    class Counting:
        """Commands 0, 1, 2, … and counts."""

        asked = 0

        def reset(self, seed: int) -> None:
            self.asked = 0

        def act(self, state: Any) -> Any:
            self.asked += 1
            return self.asked - 1

    simulator: Any = held()
    simulator.snapshot = lambda env: env
    controller: Any = Counting()
    agent = PlanningAgent(controller, simulator)
    nothing: Any = None
    for _ in range(2):
        agent.reset(0)
        assert [agent.act(nothing, nothing) for _ in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_hold_must_be_positive() -> None:
    with pytest.raises(ValueError, match="hold"):
        HeldCarRacingSimulator(hold=0)


def test_a_placed_car_stands_where_it_was_put_in_one_piece() -> None:
    track = make_track(3)
    placed = place_car(track.start, np.array([10.0, -20.0]), 1.2, speed=30.0)
    np.testing.assert_allclose(body_origin(placed), [10.0, -20.0], atol=1e-4)
    assert placed[ANGLE] == pytest.approx(1.2)
    assert np.hypot(placed[VX], placed[VY]) == pytest.approx(30.0)
    for wheel in range(1, 5):
        before = np.linalg.norm(body_origin(track.start, wheel) - body_origin(track.start))
        assert np.linalg.norm(body_origin(placed, wheel) - body_origin(placed)) == pytest.approx(before, abs=1e-4)


def test_pictures_of_a_drive() -> None:
    simulator, track = held(), make_track(3)
    cars = simulator.replay(3, np.tile(np.array([0.0, 0.5], np.float32), (20, 1)))
    gif = Image.open(io.BytesIO(animation(track, cars, cars[:11])))
    assert gif.size == (2 * 192 + 6, 192 + 18)
    assert getattr(gif, "n_frames", 1) == 5
    cost = Cost(Pixels.of(VIEW.shape), CNN.of(jax.random.key(0), 1, (8,)))
    axes: Any = cost_map(cost, simulator, track, cars, cars).axes[0]
    assert np.size(axes.collections[0].get_array()) == (len(track.line) + 1) * 17
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["expert", "learned controller"]


def test_bundled_recordings_become_demonstrations_in_the_planning_view() -> None:
    task = get_task("car_racing")
    demos = task.demonstrations(episodes=1)
    simulator: Any = task.simulator()
    assert demos.observation_shape == simulator.observation_shape == (48, 48, 1)
    assert demos.horizon == 1000 // simulator.hold == 250
    state = simulator.state_from_observation(demos.observations[0, 100])
    np.testing.assert_array_equal(simulator.observe(state), demos.observations[0, 100])
    assert task.demonstrations_path().exists()
    assert isinstance(expert_agent(task), DrivingExpert)
