"""Rollouts that end the task: found as the environment finds them, and left out by a planner that is to survive."""

from __future__ import annotations

import numpy as np
import pytest

from gym_environments import Walk
from rhirl.learning import Controller
from rhirl.planning import Planner
from rhirl.simulators import Rollout
from rhirl.simulators.gym import GymSimulator
from rhirl.simulators.mujoco import MujocoSimulator
from rhirl.simulators.mujoco_ending import find_limits


@pytest.mark.parametrize(
    ("env_id", "entries", "lower", "upper"),
    [
        ("Hopper-v5", [0, 1], [0.7, -0.2], [np.inf, 0.2]),
        ("Walker2d-v5", [0, 1], [0.8, -1.0], [2.0, 1.0]),
        ("Ant-v5", [0], [0.2], [1.0]),
        ("HalfCheetah-v5", [], [], []),
    ],
)
def test_the_limits_are_those_of_the_environment(
    env_id: str, entries: list[int], lower: list[float], upper: list[float]
) -> None:
    limits = MujocoSimulator(env_id)._limits
    assert limits is not None
    np.testing.assert_array_equal(limits.entries, entries)
    np.testing.assert_allclose(limits.lower, lower, rtol=1e-12)
    np.testing.assert_allclose(limits.upper, upper, rtol=1e-12)


def test_rollouts_end_where_the_environment_itself_ends() -> None:
    """Some of ninety sequences fall, some do not, and `step` and `terminated` agree on which."""
    simulator = MujocoSimulator("Hopper-v5")
    start = simulator.reset(seed=3)
    V = np.random.default_rng(0).uniform(-1, 1, (90, 6, 3)).repeat(3, axis=1)
    rollout = simulator.rollout(start, V)
    assert rollout.ended is not None
    for sequence, ended in zip(V[:20], rollout.ended, strict=False):
        state, fell = start, False
        for v in sequence:
            state = simulator.step(state, v)
            fell = fell or simulator.terminated(state)
        assert fell == ended
    assert 10 < rollout.ended.sum() < 80


def test_any_environments_rollouts_tell_that_they_end() -> None:
    """`Walk` ends beyond 30."""
    simulator = GymSimulator(Walk, workers=0)
    V = np.stack([np.full((20, 1), push) for push in (-1.0, 0.0, 1.0)])
    rollout = simulator.rollout(simulator.reset(seed=0), V)
    assert rollout.ended is not None
    assert rollout.ended.tolist() == [False, False, True]
    assert (rollout.observations[:, -1, 0] > 30).tolist() == [False, False, True]
    assert rollout.valid.all()


def test_a_rule_that_is_no_interval_is_noticed() -> None:
    assert find_limits(lambda q: bool(q[0] + q[1] > 0.5), np.zeros(2)) is None
    limits = find_limits(lambda q: bool(q[1] > 0.5), np.zeros(2))
    assert limits is not None
    assert limits.entries.tolist() == [1]
    assert limits.upper[0] == pytest.approx(0.5, abs=1e-12)
    assert limits.ended(np.array([9.0, 0.6]))


@pytest.mark.parametrize(
    ("valid", "ended", "survive", "usable"),
    [
        ([1, 1, 0], [0, 1, 0], True, [1, 0, 0]),
        ([1, 1, 0], [0, 1, 0], False, [1, 1, 0]),
        ([1, 1, 0], [1, 1, 0], True, [1, 1, 0]),  # all end: any plan is better than none
        ([0, 0, 0], [0, 0, 0], True, [0, 0, 0]),
    ],
)
def test_who_is_to_survive_plans_with_rollouts_that_do(
    valid: list[int], ended: list[int], survive: bool, usable: list[int]
) -> None:
    rollout = Rollout(np.zeros((3, 2, 1)), np.array(valid, bool), np.array(ended, bool))
    np.testing.assert_array_equal(rollout.usable(survive), np.array(usable, bool))
    assert Rollout(np.zeros((3, 2, 1)), np.array(valid, bool)).usable(survive).tolist() == [v == 1 for v in valid]


def test_a_cost_that_asks_for_a_fall_is_not_obeyed() -> None:
    """The cost pays for leaning forward: without `survive` the hopper leans until it falls, with it it does not."""
    simulator = MujocoSimulator("Hopper-v5", integrator="implicitfast", substeps=1)

    def steps_survived(survive: bool) -> int:
        planner = Planner(K=15, M=60, beta=0.3, ess=0.1, survive=survive)
        controller, state = Controller(simulator, lambda x: x[..., 1], planner), simulator.reset(seed=0)
        for t in range(60):
            state = simulator.step(state, controller.act(state))
            if simulator.terminated(state):
                return t
        return 60

    assert steps_survived(True) >= steps_survived(False) + 5
