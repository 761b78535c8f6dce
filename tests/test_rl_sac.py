"""SAC's mathematics: losses, targets, temperature, replay, and the fused updates."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rhirl.rl import sac
from rhirl.rl.networks import sample
from rhirl.rl.replay import Replay, Transitions, insert, pack, unpack
from rhirl.rl.sac import SACConfig

N, M = 3, 2
CONFIG = SACConfig(hidden=(8,), batch=8, capacity=64)
update = jax.jit(sac.update, static_argnums=0)
targets = jax.jit(sac.targets, static_argnums=0)


pytestmark = pytest.mark.usefixtures("quick_compilation")


def transitions(count: int, seed: int = 0, terminal: float = 0.0) -> Transitions:
    rng = np.random.default_rng(seed)
    x, x_next = rng.normal(size=(2, count, N)).astype(np.float32)
    u = rng.uniform(-1, 1, (count, M)).astype(np.float32)
    return Transitions(
        x, u, rng.normal(size=count).astype(np.float32), np.full(count, terminal, np.float32), x_next
    )


def filled() -> Replay:
    return insert(Replay.create(64, N, M), jnp.asarray(pack(transitions(32))))


def copied(learner: sac.Learner) -> sac.Learner:
    return jax.tree.map(jnp.copy, learner)


def identical(a: Any, b: Any) -> bool:
    return all(np.array_equal(p, q) for p, q in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_the_ring_keeps_the_latest_transitions() -> None:
    replay = Replay.create(10, N, M)
    rows = pack(transitions(25))
    for start in range(0, 25, 5):
        replay = insert(replay, jnp.asarray(rows[start : start + 5]))
    kept = {row.tobytes() for row in np.asarray(replay.rows)}
    assert kept == {row.tobytes() for row in rows[15:]}


def test_the_counter_of_a_full_ring_stays_small_and_full() -> None:
    replay = Replay.create(10, N, M)
    for _ in range(100):
        replay = insert(replay, jnp.asarray(pack(transitions(7))))
    assert 10 <= int(replay.inserted) < 20
    assert int(replay.inserted) % 10 == 700 % 10


def test_packing_is_undone_exactly() -> None:
    batch = transitions(6)
    for before, after in zip(batch, unpack(jnp.asarray(pack(batch)), N, M), strict=True):
        np.testing.assert_array_equal(before, after)


def test_targets_stop_at_terminations_and_bootstrap_everywhere_else() -> None:
    learner = sac.init(CONFIG, N, M)
    batch = transitions(8, terminal=0.0)
    batch.d[:4] = 1.0
    noise = jax.random.normal(jax.random.PRNGKey(1), (8, M))
    config = dataclasses.replace(CONFIG, reward_scale=0.5)
    y = targets(config, learner, batch, noise)
    u, log_pi = sample(learner.actor, batch.x_next, noise)
    value = learner.target(batch.x_next, u).min(0) - jnp.exp(learner.log_alpha) * log_pi
    np.testing.assert_allclose(y[:4], 0.5 * batch.r[:4], rtol=1e-6)
    np.testing.assert_allclose(y[4:], 0.5 * batch.r[4:] + 0.99 * value[4:], rtol=1e-6)


@pytest.mark.parametrize("which", ["actor", "critic"])
def test_gradients_agree_with_finite_differences(which: str) -> None:
    with jax.enable_x64(True):
        learner = sac.init(CONFIG, N, M)
        batch = Transitions(*(jnp.asarray(a, jnp.float64) for a in transitions(8)))
        noise = jax.random.normal(jax.random.PRNGKey(2), (8, M), jnp.float64)

        def loss(tree: Any) -> Any:
            if which == "critic":
                return sac.critic_loss(tree, batch, batch.r)
            return sac.actor_loss(tree, learner.critic, jnp.asarray(0.3), batch.x, noise)[0]

        tree = jax.tree.map(lambda a: a.astype(jnp.float64), getattr(learner, which))
        rng = np.random.default_rng(0)
        direction = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), tree)
        value, h = jax.jit(jax.value_and_grad(loss)), 1e-6
        plus, minus = (value(jax.tree.map(lambda a, b, s=s: a + s * b, tree, direction))[0] for s in (h, -h))
        slopes = jax.tree.map(lambda a, b: (a * b).sum(), value(tree)[1], direction)
        assert sum(jax.tree.leaves(slopes)) == pytest.approx(float(plus - minus) / (2 * h), rel=1e-5)


def test_fused_updates_are_the_single_updates_in_a_row() -> None:
    replay, learner = filled(), sac.init(CONFIG, N, M)
    key, k_index, k_noise = jax.random.split(learner.key, 3)
    index = jax.random.randint(k_index, (4, 8), 0, 32)
    noise = jax.random.normal(k_noise, (4, 2, 8, M))
    one_by_one = copied(learner)
    for i in range(4):
        one_by_one, _ = update(CONFIG, one_by_one, unpack(replay.rows[index[i]], N, M), noise[i])
    fused, _ = sac.updates(CONFIG, learner, replay, 4)
    assert int(fused.updates) == 4
    np.testing.assert_array_equal(fused.key, key)
    for a, b in zip(jax.tree.leaves(fused.actor), jax.tree.leaves(one_by_one.actor), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_same_learner_and_data_give_the_same_bits() -> None:
    first, _ = sac.updates(CONFIG, sac.init(CONFIG, N, M), filled(), 4)
    second, _ = sac.updates(CONFIG, sac.init(CONFIG, N, M), filled(), 4)
    assert identical(first, second)


def test_targets_follow_the_critics_by_tau() -> None:
    learner = sac.init(CONFIG, N, M)
    batch = Transitions(*map(jnp.asarray, transitions(8)))
    after, _ = update(CONFIG, learner, batch, jnp.zeros((2, 8, M)))
    expected = jax.tree.map(lambda old, q: old + CONFIG.tau * (q - old), learner.target, after.critic)
    for a, b in zip(jax.tree.leaves(after.target), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_fixed_temperature_stays_and_a_learned_one_moves_towards_its_entropy() -> None:
    batch = Transitions(*map(jnp.asarray, transitions(8)))

    def after_four_updates(config: SACConfig) -> tuple[sac.Learner, sac.Metrics]:
        learner, metrics = sac.init(config, N, M), {}
        for noise in jax.random.normal(jax.random.PRNGKey(3), (4, 2, 8, M)):
            learner, metrics = update(config, learner, batch, noise)
        return learner, metrics

    learner, metrics = after_four_updates(dataclasses.replace(CONFIG, temperature=0.2))
    assert float(jnp.exp(learner.log_alpha)) == pytest.approx(0.2)
    assert metrics["temperature"] == pytest.approx(0.2)
    # A fresh actor is close to uniform: its entropy is above -m, so the bonus shrinks; below +10, so it grows.
    for target, grows in ((None, False), (10.0, True)):
        learner, _ = after_four_updates(dataclasses.replace(CONFIG, target_entropy=target))
        assert (float(learner.log_alpha) > 0) == grows


def test_a_reward_function_replaces_the_stored_reward() -> None:
    def of_states(parameters: Any, x: jax.Array, x_next: jax.Array) -> jax.Array:
        return parameters["w"] * x[:, 0] + x_next[:, 1]

    replay = filled()
    batch = unpack(replay.rows[:32], N, M)
    relabelled = Transitions(*map(np.asarray, batch._replace(r=2.0 * batch.x[:, 0] + batch.x_next[:, 1])))
    stored = insert(Replay.create(64, N, M), jnp.asarray(pack(relabelled)))
    a, _ = sac.updates(CONFIG, sac.init(CONFIG, N, M), replay, 4, of_states, {"w": jnp.asarray(2.0)})
    b, _ = sac.updates(CONFIG, sac.init(CONFIG, N, M), stored, 4)
    for p, q in zip(jax.tree.leaves(a.critic), jax.tree.leaves(b.critic), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-6)
    c, _ = sac.updates(CONFIG, sac.init(CONFIG, N, M), replay, 4, of_states, {"w": jnp.asarray(-2.0)})
    assert not identical(a.critic, c.critic)


def test_configurations_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="replay buffer holds"):
        SACConfig(envs=100, round_steps=100, capacity=1000)
    with pytest.raises(ValueError, match="raise update_ratio"):
        SACConfig(update_ratio=0.1)
    with pytest.raises(ValueError, match="positive"):
        SACConfig(temperature=0.0)
