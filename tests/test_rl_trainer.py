"""SAC in environments whose answers are known, and training that can be stopped and resumed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv

from rhirl.rl import SAC, Environments, Policy, SACConfig, Workers, evaluate, to_numpy

pytestmark = pytest.mark.usefixtures("quick_compilation")


class Probe(gymnasium.Env):
    """One observation, one control; pays `pay(x, u)` and ends as told."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = np.float32(self.np_random.choice([-1.0, 1.0]) if self.kind == "match" else 0.0)
        return np.array([self.x]), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.kind == "match":  # best control: 0.5 x in [-1, 1] units, worth 0
            return np.array([self.x]), -float((action[0] / 2 - 0.5 * self.x) ** 2), True, False, {}
        return np.array([self.x]), 1.0, self.kind == "ends", False, {}


def probe_config(**changes: Any) -> SACConfig:
    settings = {
        "hidden": (32,), "learning_rate": 5e-3, "batch": 32, "gamma": 0.5, "tau": 0.1, "temperature": 1e-3,
        "capacity": 5_000, "envs": 2, "round_steps": 16, "random_steps": 64, "seed": 1,
    }  # fmt: skip
    return SACConfig(**{**settings, **changes})


def pendulum_config(**changes: Any) -> SACConfig:
    return SACConfig(**{"hidden": (16,), "batch": 16, "capacity": 300, "envs": 3, "round_steps": 4, **changes})


PENDULUM = partial(gymnasium.make, "Pendulum-v1")


@pytest.mark.parametrize(("kind", "value"), [("ends", 1.0), ("goes_on", 2.0)])
def test_termination_has_no_future_and_truncation_has_one(kind: str, value: float) -> None:
    """Reward 1 a step, γ = ½, time limit 1: worth 1 if the task ends there, 1/(1-γ) = 2 if only the clock does."""
    sac = SAC(probe_config(), partial(Probe, kind), horizon=1)
    for _ in sac.train(1_500):
        pass
    q = sac.learner.critic(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    np.testing.assert_allclose(q, value, atol=0.05)


def test_the_best_control_depends_on_the_observation_and_is_found() -> None:
    sac = SAC(probe_config(), partial(Probe, "match"), horizon=1)
    for _ in sac.train(3_000):
        pass
    u = sac.policy().act(np.array([[-1.0], [1.0]]))
    np.testing.assert_allclose(u, [[-0.5], [0.5]], atol=0.1)
    assert evaluate(partial(Probe, "match"), 1, sac.policy().actor, 10).mean() > -0.02


def test_a_reward_function_is_what_the_policy_learns() -> None:
    def reward(parameters: Any, x: jax.Array, x_next: jax.Array) -> jax.Array:
        return jnp.full(len(x), parameters)

    sac = SAC(probe_config(), partial(Probe, "goes_on"), 1, reward=reward, reward_parameters=jnp.asarray(-3.0))
    for _ in sac.train(1_500):
        pass
    np.testing.assert_allclose(sac.learner.critic(jnp.zeros((1, 1)), jnp.zeros((1, 1))), -6.0, atol=0.2)


def test_transitions_chain_within_episodes_and_break_at_resets() -> None:
    envs = Environments(PENDULUM, 2, horizon=5, seed=3)
    rollout = envs.rollout(None, 11)
    batch = rollout.transitions
    x, x_next = batch.x.reshape(11, 2, 3), batch.x_next.reshape(11, 2, 3)
    for t in range(10):
        assert np.array_equal(x_next[t], x[t + 1]) == ((t + 1) % 5 != 0)
    assert batch.d.sum() == 0
    assert rollout.lengths.tolist() == [5, 5, 5, 5]
    rewards = batch.r.reshape(11, 2)
    np.testing.assert_allclose(rollout.returns[:2], rewards[:5].sum(0), rtol=1e-5)


def test_controls_are_scaled_to_the_box_of_the_environment() -> None:
    env: Any = PendulumEnv()
    env.reset(seed=0)
    envs = Environments(PENDULUM, 1, horizon=200)
    before = envs.x.copy()
    batch = envs.rollout(None, 1).transitions
    theta, speed = np.arctan2(before[0, 1], before[0, 0]), before[0, 2]
    env.state = np.array([theta, speed], np.float64)
    x_next, *_ = env.step(2.0 * batch.u[0])
    np.testing.assert_allclose(batch.x_next[0], x_next, atol=1e-5)


def bits(sac: SAC) -> list[bytes]:
    state = (sac.learner, sac.replay, sac.envs.state())
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)]


@pytest.mark.parametrize("processes", [0, 2])
def test_a_resumed_training_ends_with_the_same_bits(tmp_path: Path, processes: int) -> None:
    def fresh() -> SAC:
        return SAC(pendulum_config(), PENDULUM, 30, processes=processes)

    whole = fresh()
    for done in whole.train(480):
        if done.steps == 240:
            whole.save(tmp_path / "half.safetensors")
    expected = bits(whole)
    # Processes take long to start, so where there are some the training that went on is itself set back.
    resumed = whole if processes else fresh()
    resumed.restore(tmp_path / "half.safetensors")
    assert resumed.steps == 240
    assert bits(resumed) != expected
    for _ in resumed.train(480):
        pass
    assert bits(resumed) == expected
    for sac in (whole, resumed):
        sac.close()


def test_two_trainings_with_one_seed_agree_and_with_two_seeds_differ() -> None:
    def trained(seed: int) -> list[bytes]:
        sac = SAC(pendulum_config(seed=seed), PENDULUM, 30)
        for _ in sac.train(200):
            pass
        return bits(sac)

    assert trained(0) == trained(0) != trained(1)


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path: Path) -> None:
    SAC(pendulum_config(), PENDULUM, 30).save(tmp_path / "a.safetensors")
    other = SAC(pendulum_config(gamma=0.9), PENDULUM, 30)
    with pytest.raises(ValueError, match=r"set gamma=0\.99"):
        other.restore(tmp_path / "a.safetensors")


def test_workers_do_what_environments_do() -> None:
    alone, shared = Environments(PENDULUM, 4, 7, seed=5), Workers(PENDULUM, 4, 7, seed=5, processes=2)
    shared.start(None, 3)
    rollout = shared.finish()
    assert rollout.transitions.x.shape == (12, 3)
    # Worker k holds environments 2k and 2k + 1, reset from the same seeds as in one process.
    first = rollout.transitions.x.reshape(2, 3, 2, 3)[:, 0].reshape(4, 3)
    np.testing.assert_array_equal(first, alone.x)
    shared.close()


def test_a_policy_file_gives_the_same_controls(tmp_path: Path) -> None:
    sac = SAC(pendulum_config(), PENDULUM, 30)
    policy = sac.policy(task="pendulum")
    policy.save(tmp_path / "policy.safetensors")
    loaded = Policy.load(tmp_path / "policy.safetensors")
    assert loaded.metadata == {"task": "pendulum"}
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_array_equal(loaded.act(x), policy.act(x))
    np.testing.assert_array_equal(loaded.act(x[0]), loaded.act(x)[0])
    longer = np.concatenate([x, np.ones((5, 4), np.float32)], axis=1)
    np.testing.assert_array_equal(loaded.act(longer), policy.act(x))
    drawn = loaded.act(x, deterministic=False, rng=np.random.default_rng(1))
    assert not np.array_equal(drawn, loaded.act(x))
    assert np.abs(drawn).max() <= 1
    with pytest.raises(ValueError, match="reads 3 observations, got 2"):
        loaded.act(x[:, :2])
    with pytest.raises(ValueError, match="pass rng"):
        loaded.act(x, deterministic=False)


def test_a_file_without_a_policy_is_refused(tmp_path: Path) -> None:
    SAC(pendulum_config(), PENDULUM, 30).save(tmp_path / "run.safetensors")
    with pytest.raises(ValueError, match="holds no policy"):
        Policy.load(tmp_path / "run.safetensors")


def test_environments_sac_cannot_drive_are_refused() -> None:
    with pytest.raises(TypeError, match="continuous controls"):
        Environments(partial(gymnasium.make, "CartPole-v1"), 1, 200)


def test_numpy_copies_are_independent_of_the_learner() -> None:
    sac = SAC(pendulum_config(), PENDULUM, 30)
    actor = to_numpy(sac.learner.actor)
    kept = actor.body.weights[0].copy()
    for _ in sac.train(200):
        pass
    np.testing.assert_array_equal(actor.body.weights[0], kept)
    assert not np.array_equal(sac.learner.actor.body.weights[0], kept)
