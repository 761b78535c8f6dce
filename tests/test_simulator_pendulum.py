"""The compiled pendulum against Gymnasium's: the same bits over whole episodes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.demos import to_action
from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.simulators.protocol import EnvironmentSimulator

SIMULATOR = PendulumSimulator()
T = 200


def make_env(**kwargs: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("Pendulum-v1", max_episode_steps=-1, **kwargs)


def controls_for(kind: str, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.uniform(-1, 1, (T, 1)).astype(np.float32)
    if kind == "bang":
        return np.sign(rng.standard_normal((T, 1))).astype(np.float32)
    return rng.normal(0, 3, (T, 1)).astype(np.float32)  # mostly far outside the box


def drive(env: Any, controls: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.stack([env.step(to_action(env, v))[0] for v in controls])


def test_it_is_an_environment_simulator() -> None:
    assert isinstance(SIMULATOR, EnvironmentSimulator)
    assert SIMULATOR.observation_shape == (3,)
    assert SIMULATOR.control_dim == 1
    assert SIMULATOR.terminated(np.zeros(2)) is False


@pytest.mark.parametrize("kind", ["uniform", "bang", "outside"])
def test_whole_episodes_equal_gymnasium_bit_for_bit(kind: str) -> None:
    env = make_env()
    for seed in range(15):
        first, _ = env.reset(seed=seed)
        state, V = SIMULATOR.reset(seed), controls_for(kind, seed)
        rollout = SIMULATOR.rollout(state, V[None])
        assert rollout.observations[0, 0].tobytes() == first.tobytes() == SIMULATOR.observe(state).tobytes()
        assert rollout.observations[0, 1:].tobytes() == drive(env, V).tobytes()
        assert rollout.valid.all()
        for v in V:
            state = SIMULATOR.step(state, v)
        assert state.tobytes() == SIMULATOR.snapshot(env).tobytes()


@pytest.mark.parametrize("seed", [0, 1, 2**31 + 7, 2**33])
def test_reset_draws_what_the_environment_draws(seed: int) -> None:
    env = make_env()
    env.reset(seed=seed)
    assert SIMULATOR.reset(seed).tobytes() == SIMULATOR.snapshot(env).tobytes()


def test_snapshots_from_the_middle_of_an_episode_continue_exactly() -> None:
    env = make_env()
    env.reset(seed=5)
    V = controls_for("uniform", 5)
    for at in range(0, 100, 20):
        before = SIMULATOR.snapshot(env)
        planned = SIMULATOR.rollout(before, np.stack([V[at : at + 20]] * 3))
        assert SIMULATOR.snapshot(env).tobytes() == before.tobytes()
        real = drive(env, V[at : at + 20])
        for j in range(3):
            assert planned.observations[j, 1:].tobytes() == real.tobytes()
        restored = make_env()
        restored.reset(seed=9)
        SIMULATOR.restore(restored, before)
        assert drive(restored, V[at : at + 20]).tobytes() == real.tobytes()


def test_a_snapshot_is_a_copy() -> None:
    env = make_env()
    env.reset(seed=0)
    state = SIMULATOR.snapshot(env)
    SIMULATOR.restore(env, state)
    state[:] = 7
    assert not (SIMULATOR.snapshot(env) == 7).any()


def test_gravity_is_the_environments() -> None:
    env, simulator, V = make_env(g=3.7), PendulumSimulator(g=3.7), controls_for("uniform", 1)
    env.reset(seed=1)
    assert simulator.rollout(simulator.reset(1), V[None]).observations[0, 1:].tobytes() == drive(env, V).tobytes()


def test_process_noise_follows_the_seed_and_has_its_deviation() -> None:
    noisy = PendulumSimulator(process_noise=0.1)
    state, V = np.array([np.pi, 0.0]), np.zeros((4000, 1, 1), np.float32)
    a, b, c = (noisy.rollout(state, V, seed=seed).observations for seed in (1, 1, 2))
    assert a.tobytes() == b.tobytes()
    assert (a[:, 1, 2] != c[:, 1, 2]).mean() > 0.999
    kick = a[:, 1, 2] - SIMULATOR.rollout(state, V).observations[:, 1, 2]
    assert abs(kick.mean()) < 4 * 0.1 / np.sqrt(4000)
    assert kick.std() == pytest.approx(0.1, rel=4 / np.sqrt(8000))
    assert (noisy.step(state, V[0, 0], seed=3) == noisy.step(state, V[0, 0], seed=3)).all()
    assert (noisy.step(state, V[0, 0], seed=3) != noisy.step(state, V[0, 0], seed=4)).all()
    assert np.abs(PendulumSimulator(process_noise=100).rollout(state, V).observations[..., 2]).max() == 8


def test_states_that_are_not_finite_make_every_rollout_invalid() -> None:
    V = controls_for("uniform", 0)[None, :5]
    for state in ([np.nan, 0.0], [np.inf, 0.0], [0.0, np.nan]):
        assert not SIMULATOR.rollout(np.array(state), V).valid.any()


def test_controls_that_are_not_finite_never_pass_for_a_good_rollout() -> None:
    V = np.zeros((3, 6, 1), np.float32)
    V[1, 2] = np.nan
    rollout = SIMULATOR.rollout(np.zeros(2), V)
    assert rollout.valid.tolist() == [True, False, True]
    assert np.isfinite(SIMULATOR.rollout(np.zeros(2), np.full((1, 3, 1), np.inf)).observations).all()


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 0, 1), (3, 4, 2), (3, 4, 1, 1)])
def test_controls_of_a_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"controls must have shape \(M, K ≥ 1, 1\)"):
        SIMULATOR.rollout(np.zeros(2), np.zeros(shape))


@pytest.mark.parametrize("state", [np.zeros(3), np.zeros((1, 2)), np.zeros(())])
def test_states_of_a_wrong_shape_are_refused(state: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"a pendulum state has shape \(2,\)"):
        SIMULATOR.rollout(state, np.zeros((1, 1, 1)))
    with pytest.raises(ValueError, match=r"a pendulum state has shape \(2,\)"):
        SIMULATOR.step(state, np.zeros(1))


def test_other_environments_are_refused() -> None:
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(TypeError, match="not CartPoleEnv"):
        SIMULATOR.snapshot(env)
    with pytest.raises(TypeError, match="not CartPoleEnv"):
        SIMULATOR.restore(env, np.zeros(2))


def test_states_of_other_types_give_the_same_numbers() -> None:
    V = controls_for("uniform", 2)[None, :5]
    exact = SIMULATOR.rollout(np.array([1.0, 0.0]), V).observations
    for state in ([1.0, 0.0], np.array([1.0, 0.0], np.float32), np.array([1, 0])):
        assert SIMULATOR.rollout(np.asarray(state), V).observations.tobytes() == exact.tobytes()
