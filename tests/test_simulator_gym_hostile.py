"""Any Gymnasium environment as a simulator: hostile inputs are masked or refused, never a wrong number."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from gym_environments import Exploding, Locked, Mine, Walk, controls_for, make
from rhirl.simulators.gym import GymSimulator, RolloutError


def test_controls_that_are_not_finite_mask_their_rollout_only() -> None:
    simulator = make("Pendulum-v1")
    state, V = simulator.reset(0), controls_for(simulator, 4, 10)
    bad = V.copy()
    bad[1, 4], bad[2, 0] = np.nan, np.nan
    good, rollout = simulator.rollout(state, V), simulator.rollout(state, bad)
    assert rollout.valid.tolist() == [True, False, False, True]
    assert np.isfinite(rollout.observations).all()
    assert rollout.observations[[0, 3]].tobytes() == good.observations[[0, 3]].tobytes()
    np.testing.assert_array_equal(rollout.observations[1, :5], good.observations[1, :5])
    with pytest.raises(ValueError, match="finite"):
        simulator.step(state, np.array([np.nan]))


def test_huge_controls_are_clipped() -> None:
    simulator = make("Pendulum-v1")
    state, V = simulator.reset(0), controls_for(simulator, 2, 10)
    wild = np.sign(V) * np.array([1e300, np.inf])[:, None, None]
    a, b = simulator.rollout(state, wild), simulator.rollout(state, np.sign(V))
    assert a.valid.all()
    assert a.observations.tobytes() == b.observations.tobytes()


def test_a_model_that_blows_up_is_masked() -> None:
    simulator = GymSimulator(Exploding, workers=0)
    rollout = simulator.rollout(simulator.reset(0), np.zeros((2, 8, 1)))
    assert rollout.valid.tolist() == [False, False]
    assert np.isfinite(rollout.observations).all()


@pytest.mark.parametrize("shape", [(0, 5, 1), (3, 1, 1)])
def test_no_samples_and_one_step(shape: tuple[int, ...]) -> None:
    simulator = make("Pendulum-v1")
    rollout = simulator.rollout(simulator.reset(0), np.zeros(shape))
    assert rollout.observations.shape == (shape[0], shape[1] + 1, 3)
    assert rollout.valid.shape == (shape[0],)


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 2), (3, 0, 1)])
def test_controls_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    simulator = make("Pendulum-v1")
    with pytest.raises(ValueError, match="controls must have shape"):
        simulator.rollout(simulator.reset(0), np.zeros(shape))


def test_states_and_environments_of_another_task_are_refused() -> None:
    pendulum, acrobot = make("Pendulum-v1"), make("Acrobot-v1")
    with pytest.raises(ValueError, match="state of AcrobotEnv, not of PendulumEnv"):
        pendulum.rollout(acrobot.reset(0), np.zeros((1, 1, 1)))
    with pytest.raises(ValueError, match="simulator is of PendulumEnv, but the environment is AcrobotEnv"):
        pendulum.snapshot(gymnasium.make("Acrobot-v1"))
    with pytest.raises(ValueError, match="has it been reset"):
        make("MountainCarContinuous-v0").snapshot(gymnasium.make("MountainCarContinuous-v0"))
    states: list[Any] = [np.zeros(3), {}, None]
    for state in states:
        with pytest.raises(ValueError, match="not a state of Pendulum-v1"):
            pendulum.rollout(state, np.zeros((1, 1, 1)))
    damaged = pendulum.reset(0)
    damaged["dynamics"] = damaged["dynamics"][:-9]
    with pytest.raises(ValueError, match="damaged"):
        pendulum.observe(damaged)


def test_an_exception_names_environment_rollout_and_step() -> None:
    simulator = GymSimulator(Mine, workers=0, check=False)
    V = np.full((3, 12, 1), -1 / 3)
    V[1:] = 1
    with pytest.raises(RolloutError, match=r"Mine raised ValueError: stepped on a mine \(step \d of rollout 1\)"):
        simulator.rollout(simulator.reset(0), V)


def test_what_has_no_map_to_controls_or_arrays_says_what_to_do() -> None:
    class Unbounded(Walk):
        action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    class Words(Walk):
        observation_space = spaces.Dict({"x": spaces.Box(0, 1)})

    walk = Walk()
    with pytest.raises(ValueError, match="to_action="):
        GymSimulator(Unbounded, workers=0)
    with pytest.raises(ValueError, match="FlattenObservation"):
        GymSimulator(Words, workers=0)
    with pytest.raises(ValueError, match="new environment at each call"):
        GymSimulator(lambda: walk, workers=0)
    with pytest.raises(ValueError, match="control_dim"):
        GymSimulator(Walk, to_action=float, workers=0)
    with pytest.raises(ValueError, match="both or neither"):
        GymSimulator(Walk, snapshot=vars, workers=0)
    with pytest.raises(ValueError, match=r"cannot be stored: \[2\] is a count; it may hold"):
        GymSimulator(Locked, snapshot=lambda e: e.counter, restore=print, workers=0)
