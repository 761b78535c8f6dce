"""Any Gymnasium environment as a simulator: parity with the real one, and restoring it."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from numpy.typing import NDArray

from gym_environments import (
    GlobalNoise,
    Locked,
    LyingMethods,
    OwnGenerator,
    OwnMethods,
    SharedCounter,
    Walk,
    controls_for,
    make,
)
from rhirl.simulators.gym import GymSimulator, InexactSimulatorError, InexactSimulatorWarning
from rhirl.simulators.protocol import EnvironmentSimulator

TASKS = ("MountainCarContinuous-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1")


def drive(env: Any, simulator: GymSimulator, controls: NDArray[Any], seed: int | None = None) -> NDArray[Any]:
    """Step a real environment and return its observations as float32, repeated after the end."""
    observations = [env.reset(seed=seed)[0]] if seed is not None else []
    terminated = False
    for v in controls:
        if not terminated:
            observation, _, terminated, _, _ = env.step(simulator.to_action(v))
            observation = np.array(observation)
        observations.append(observation)
    return np.array(observations, np.float32)


@pytest.mark.parametrize("task", TASKS)
def test_rollouts_equal_the_real_environment_bit_for_bit(task: str) -> None:
    simulator, env, twin = make(task), gymnasium.make(task), gymnasium.make(task)
    assert isinstance(simulator, EnvironmentSimulator)
    assert simulator.exact is True
    assert simulator.restore_error == 0.0
    for seed in range(4):
        start = controls_for(simulator, 1, 3 * seed, seed)[0]
        V = controls_for(simulator, 6, 25, seed + 10)
        seen = drive(env, simulator, start, seed)
        rollout = simulator.rollout(simulator.snapshot(env), V)
        assert rollout.observations.dtype == np.float32
        assert rollout.valid.all()
        for i in range(len(V)):
            truth = drive(twin, simulator, np.concatenate([start, V[i]]), seed)
            assert rollout.observations[i].tobytes() == truth[len(seen) - 1 :].tobytes()


def test_cart_pole_falls_inside_these_rollouts() -> None:
    simulator = make("CartPole-v1")
    rollout = simulator.rollout(simulator.reset(0), np.ones((1, 25, 1)))
    x = rollout.observations[0]
    fallen = int(np.flatnonzero((x == x[-1]).all(axis=1))[0])
    assert abs(x[fallen, 2]) > 12 * np.pi / 180 >= abs(x[fallen - 1, 2])
    assert rollout.valid.all()


@pytest.mark.parametrize("task", TASKS)
def test_planning_leaves_the_real_environment_alone(task: str) -> None:
    simulator, env, twin = make(task), gymnasium.make(task), gymnasium.make(task)
    start, rest = np.split(controls_for(simulator, 1, 20, 5)[0], [8])
    drive(env, simulator, start, 3), drive(twin, simulator, start, 3)
    before = copy.deepcopy({k: v for k, v in vars(env.unwrapped).items() if k != "_np_random"})
    random = env.unwrapped.np_random.bit_generator.state
    simulator.rollout(simulator.snapshot(env), controls_for(simulator, 5, 10))
    assert env.unwrapped.np_random.bit_generator.state == random
    after = {k: v for k, v in vars(env.unwrapped).items() if k != "_np_random"}
    np.testing.assert_equal(after, before)
    assert drive(env, simulator, rest).tobytes() == drive(twin, simulator, rest).tobytes()


@pytest.mark.parametrize("make_env", [Walk, *(partial(gymnasium.make, task) for task in TASKS)])
def test_restore_and_replay_give_the_same_bits(make_env: Any) -> None:
    simulator, env = GymSimulator(make_env, workers=0), make_env()
    start, V = controls_for(simulator, 1, 6)[0], controls_for(simulator, 1, 30, 1)[0]
    drive(env, simulator, start, 1)
    state = simulator.snapshot(env)
    first = drive(env, simulator, V)
    simulator.restore(env, state)
    assert drive(env, simulator, V).tobytes() == first.tobytes()
    fresh = make_env()
    fresh.reset(seed=99)
    simulator.restore(fresh, state)
    assert drive(fresh, simulator, V).tobytes() == first.tobytes()


@pytest.mark.parametrize("task", TASKS)
def test_step_and_reset_do_what_the_environment_does(task: str) -> None:
    simulator, env = make(task), gymnasium.make(task)
    state = simulator.reset(7)
    observation, _ = env.reset(seed=7)
    assert simulator.observe(state).tobytes() == observation.tobytes()
    for v in controls_for(simulator, 1, 40)[0]:
        state = simulator.step(state, v)
        observation, _, terminated, _, _ = env.step(simulator.to_action(v))
        assert simulator.observe(state).tobytes() == observation.tobytes()
        assert state["dynamics"].tobytes() == simulator.snapshot(env)["dynamics"].tobytes()
        assert simulator.terminated(state) == terminated
        if terminated:
            assert simulator.step(state, v) is state
            break
    assert terminated == (task == "CartPole-v1")


def test_time_limits_do_not_reach_the_planner() -> None:
    limited = GymSimulator(partial(gymnasium.make, "Pendulum-v1", max_episode_steps=5), workers=0)
    V = controls_for(limited, 3, 20)
    a = limited.rollout(limited.reset(0), V)
    b = make("Pendulum-v1").rollout(make("Pendulum-v1").reset(0), V)
    assert a.observations.tobytes() == b.observations.tobytes()


def test_noise_comes_from_the_seed_alone() -> None:
    simulator = GymSimulator(Walk, workers=0)
    V = np.zeros((3, 10, 1))
    state, other = simulator.reset(0), simulator.reset(0)
    other["random"] = simulator.reset(1)["random"]
    a = simulator.rollout(state, V, seed=4).observations
    assert a.tobytes() == simulator.rollout(other, V, seed=4).observations.tobytes()
    assert not np.array_equal(a, simulator.rollout(state, V, seed=5).observations)
    assert not np.array_equal(a[0], a[1])
    assert simulator.step(state, V[0, 0], seed=4)["random"].tobytes() == state["random"].tobytes()


def restart(env: Any, state: tuple[float, float]) -> None:
    """Restore by way of a reset, which makes new random generators."""
    env.reset(seed=1)
    env.body.x, env.body.v = state


@pytest.mark.parametrize("environment", [Walk, OwnGenerator])
@pytest.mark.parametrize("functions", [{}, {"snapshot": lambda e: (e.body.x, e.body.v), "restore": restart}])
def test_noise_does_not_depend_on_what_came_before(environment: Any, functions: dict[str, Any]) -> None:
    simulator = GymSimulator(environment, workers=0, strict=True, **functions)
    state, V = simulator.reset(0), np.zeros((4, 6, 1))
    expected = simulator.rollout(state, V, seed=3).observations
    assert len({row.tobytes() for row in expected}) == 4
    for other in range(3):
        env = environment()
        env.reset(seed=other)
        simulator.rollout(simulator.snapshot(env), V[:1], seed=other)
        simulator.step(simulator.reset(other), V[0, 0])
        assert simulator.rollout(state, V, seed=3).observations.tobytes() == expected.tobytes()
        assert simulator.rollout(state, V[:2], seed=3).observations.tobytes() == expected[:2].tobytes()


def test_a_state_is_arrays_that_survive_a_file(tmp_path: Path) -> None:
    simulator = make("Pendulum-v1")
    state, V = simulator.step(simulator.reset(2), np.array([0.3])), controls_for(simulator, 2, 9)
    assert all(type(leaf) is np.ndarray and leaf.dtype != object for leaf in state.values())
    np.savez(tmp_path / "state.npz", **state)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as loaded:
        again = make("Pendulum-v1").rollout(dict(loaded), V)
    assert again.observations.tobytes() == simulator.rollout(state, V).observations.tobytes()


def test_one_control_in_bins_stands_for_a_discrete_action() -> None:
    simulator = make("Acrobot-v1")
    assert [simulator.to_action(np.array([v])) for v in (-1, -0.34, -0.33, 0, 0.33, 0.34, 1)] == [
        0,
        0,
        1,
        1,
        1,
        2,
        2,
    ]


def test_boxes_are_scaled_in_their_own_type_and_clipped() -> None:
    simulator = GymSimulator(Walk, workers=0)
    actions = [simulator.to_action(np.array([v])) for v in (-5, -1, 0, 0.5, 1, np.inf)]
    np.testing.assert_array_equal(actions, [[-2], [-2], [1], [2.5], [4], [4]])
    assert actions[0].dtype == np.float32


def test_the_user_may_map_controls_to_actions() -> None:
    def bang_bang(v: NDArray[Any]) -> int:
        return int(v.sum() > 0)

    simulator = GymSimulator(partial(gymnasium.make, "CartPole-v1"), to_action=bang_bang, control_dim=2, workers=0)
    V = controls_for(simulator, 1, 8)
    bins = make("CartPole-v1")
    same = bins.rollout(bins.reset(0), np.sign(V.sum(axis=2, keepdims=True)))
    rollout = simulator.rollout(simulator.reset(0), V)
    assert rollout.observations.tobytes() == same.observations.tobytes()


@pytest.mark.parametrize(
    "wrap",
    [
        partial(wrappers.RescaleAction, min_action=np.float32(-0.5), max_action=np.float32(0.5)),
        partial(wrappers.RescaleObservation, min_obs=np.float32(0), max_obs=np.float32(1)),
        partial(wrappers.StickyAction, repeat_action_probability=0.5),
        wrappers.TimeAwareObservation,
        wrappers.RecordEpisodeStatistics,
    ],
)
def test_wrappers_are_planned_through(wrap: Any) -> None:
    def make_env() -> gymnasium.Env[Any, Any]:
        return wrap(gymnasium.make("Pendulum-v1"))

    simulator, env = GymSimulator(make_env, workers=0), make_env()
    seen = drive(env, simulator, controls_for(simulator, 1, 5)[0], 0)
    state = simulator.snapshot(env)
    assert simulator.observe(state).tobytes() == seen[-1].tobytes()
    assert simulator.exact is True


def test_discrete_observations_through_a_flattening_wrapper() -> None:
    def frozen_lake() -> gymnasium.Env[Any, Any]:
        return wrappers.FlattenObservation(gymnasium.make("FrozenLake-v1"))

    simulator = GymSimulator(frozen_lake, workers=0)
    rollout = simulator.rollout(simulator.reset(0), controls_for(simulator, 4, 6))
    assert rollout.observations.shape == (4, 7, 16)
    np.testing.assert_array_equal(rollout.observations.sum(axis=2), 1)


def test_own_methods_of_an_environment_are_found() -> None:
    simulator = GymSimulator(OwnMethods, workers=0)
    assert simulator.exact is True
    state = simulator.reset(0)
    x = simulator.rollout(state, np.full((1, 3, 1), -1 / 3)).observations[0]
    np.testing.assert_allclose(np.diff(x[:, 1]), [0.0, 0.01, 0.02], atol=1e-7)


def test_methods_that_do_not_restore_are_passed_over() -> None:
    assert GymSimulator(LyingMethods, workers=0).exact is True


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (GlobalNoise, "GlobalNoise .*NumPy's global ones.*self.np_random"),
        (Locked, "Locked .*counter cannot be read.*pass snapshot= and restore="),
        (SharedCounter, "SharedCounter .*same seed.*copies share"),
    ],
)
def test_an_environment_that_cannot_be_restored_is_refused_by_name(environment: Any, words: str) -> None:
    with pytest.raises(InexactSimulatorError, match=words):
        GymSimulator(environment, workers=0)


def test_the_check_leaves_global_random_numbers_alone() -> None:
    generator = np.random.mtrand.get_bit_generator()
    before = repr(generator.state)
    with pytest.raises(InexactSimulatorError):
        GymSimulator(GlobalNoise, workers=0)
    assert repr(generator.state) == before


def test_an_inexact_restore_of_the_user_is_measured() -> None:
    def snapshot(env: Any) -> Any:
        return env.body.x

    def restore(env: Any, x: Any) -> None:
        env.body.x = x

    build = partial(GymSimulator, Walk, snapshot=snapshot, restore=restore, workers=0)
    with pytest.warns(InexactSimulatorWarning, match=r"Walk cannot be restored exactly \(error up to \d"):
        simulator = build()
    assert simulator.exact is False
    assert simulator.restore_error is not None
    assert 0 < simulator.restore_error < np.inf
    with pytest.raises(InexactSimulatorError, match="Walk"):
        build(strict=True)
    assert build(check=False).exact is None


def test_a_snapshot_that_changes_the_environment_is_noticed() -> None:
    def snapshot(env: Any) -> Any:
        env.body.v += 0.1
        return env.body.x, env.body.v

    def restore(env: Any, state: Any) -> None:
        env.body.x, env.body.v = state

    with pytest.raises(InexactSimulatorError, match="snapshot must change nothing"):
        GymSimulator(Walk, snapshot=snapshot, restore=restore, strict=True, workers=0)


def test_an_exact_restore_of_the_user_needs_no_random_numbers() -> None:
    def snapshot(env: Any) -> Any:
        return env.body.x, env.body.v

    def restore(env: Any, state: Any) -> None:
        env.body.x, env.body.v = state

    assert GymSimulator(Walk, snapshot=snapshot, restore=restore, strict=True, workers=0).exact is True


def test_a_physics_engine_in_c_is_refused() -> None:
    pytest.importorskip("Box2D")
    with pytest.raises(ValueError, match=r"LunarLander.*observe=.*snapshot= and restore=.*world"):
        make("LunarLanderContinuous-v3")
