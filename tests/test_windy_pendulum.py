"""Pendulum in the wind: the environment and the planner's simulator obey one law, and rewards are Pendulum's."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.simulators.windy_pendulum import ENV_ID
from rhirl.tasks import get_task

TORQUES = np.random.default_rng(0).uniform(-2, 2, (60, 1)).astype(np.float32)


def run(env: gymnasium.Env[Any, Any], seed: int = 5) -> tuple[NDArray[Any], NDArray[Any]]:
    """States (L + 1, 2) and rewards (L,) of an episode."""
    env.reset(seed=seed)
    inner: Any = env.unwrapped
    states, rewards = [np.array(inner.state)], []
    for torque in TORQUES:
        rewards.append(env.step(torque)[1])
        states.append(np.array(inner.state))
    return np.stack(states), np.array(rewards, np.float64)


def gusts(states: NDArray[Any]) -> NDArray[Any]:
    """What the calm pendulum does not explain of each ω', where ω is not at its limit."""
    calm = PendulumSimulator()
    expected = np.stack([calm.step(x, torque / 2) for x, torque in zip(states[:-1], TORQUES, strict=True)])
    return (states[1:, 1] - expected[:, 1])[np.abs(states[1:, 1]) < 7.9]


def test_without_wind_it_is_pendulum() -> None:
    windless, plain = run(gymnasium.make(ENV_ID, process_noise=0.0)), run(gymnasium.make("Pendulum-v1"))
    assert np.array_equal(windless[0], plain[0])
    assert np.array_equal(windless[1], plain[1])


def test_gusts_have_the_strength_of_the_task_and_repeat_with_the_seed() -> None:
    task = get_task("windy_pendulum")
    found = np.concatenate([gusts(run(task.make_env(), seed)[0]) for seed in range(20)])
    assert found.std() == pytest.approx(0.3, rel=0.05)
    assert abs(found.mean()) < 3 * 0.3 / np.sqrt(len(found))
    assert np.array_equal(run(task.make_env())[0], run(task.make_env())[0])
    assert not np.array_equal(run(task.make_env(), 1)[0], run(task.make_env(), 2)[0])


def test_the_simulator_blows_as_hard_but_not_at_the_same_time() -> None:
    task = get_task("windy_pendulum")
    env, simulator = task.make_env(), task.simulator()
    env.reset(seed=3)
    state = simulator.snapshot(env)
    V = np.zeros((4000, 1, 1), np.float32)
    omega = simulator.rollout(state, V, seed=1).observations[:, 1, 2]
    assert omega.std() == pytest.approx(0.3, rel=0.05)
    calm = PendulumSimulator().rollout(state, V[:1]).observations[0, 1, 2]
    assert omega.mean() == pytest.approx(calm, abs=0.02)


def test_rewards_charge_for_the_state_a_step_starts_in() -> None:
    states, rewards = run(gymnasium.make(ENV_ID, process_noise=0.5))
    theta, omega = states[:-1].T
    angle = (theta + np.pi) % (2 * np.pi) - np.pi
    expected = -(angle**2 + 0.1 * omega**2 + 0.001 * TORQUES[:, 0].astype(np.float64) ** 2)
    assert rewards == pytest.approx(expected, abs=1e-6)
