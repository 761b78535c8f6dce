"""What keeps the cost learnable: blurred states, and a loss that no single plan can dominate."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import Array

from rhirl.costs import MLP
from rhirl.demos import load_demos
from rhirl.learning import RHIRL, Config
from rhirl.learning.control_step import blurred
from rhirl.learning.objective import Windows, loss
from rhirl.planning import Planner
from rhirl.simulators.pendulum import PendulumSimulator

DEMOS = load_demos("pendulum", noise=0.0).take(4)
SMALL = Config(planner=Planner(K=5, M=16), parallel=2, hidden=(8,))


def test_blurring_adds_noise_of_the_asked_deviation_to_every_coordinate() -> None:
    x = jnp.broadcast_to(jnp.array([1.0, -2.0, 3.0]), (5000, 3))
    deviation = jnp.array([0.5, 0.0, 2.0])
    noisy = np.asarray(blurred(jax.random.key(0), x, deviation))
    np.testing.assert_allclose(noisy.mean(axis=0), [1, -2, 3], atol=4 * 2 / 5000**0.5)
    np.testing.assert_allclose(noisy.std(axis=0), deviation, rtol=0.04)


def test_the_blur_is_new_at_every_step_and_for_either_side_and_repeatable() -> None:
    learner, again = (RHIRL(PendulumSimulator(), DEMOS, replace(SMALL, blur=0.5), seed=1) for _ in range(2))
    plain = RHIRL(PendulumSimulator(), DEMOS, SMALL, seed=1)
    losses = [float(learner.step().loss) for _ in range(3)]
    assert losses == [float(again.step().loss) for _ in range(3)]
    assert losses[0] != pytest.approx(float(plain.step().loss), rel=1e-3)


def test_two_blurred_points_are_told_apart_only_as_far_as_the_blur_allows() -> None:
    """Expert at −δ, planner at +δ, blur s, penalty c: the best cost is tanh(δx / s²) / 2c, however small δ is."""
    delta, s, c = 0.1, 0.5, 1.0
    expert, planner = jnp.full((512, 1, 1), -delta), jnp.full((512, 1, 1), delta)
    share = jnp.full((512, 1), 1 / 512)
    optimiser = optax.adam(optax.cosine_decay_schedule(1e-2, 800))

    def objective(network: MLP, key: Array) -> Array:
        here, there = jax.random.split(key)
        windows = Windows(blurred(here, expert, jnp.asarray(s)), share)
        rollouts = blurred(there, planner, jnp.asarray(s))
        return loss(network, windows, rollouts, share[:, 0], jnp.asarray(1.0), penalty=c)

    def step(carry: Any, key: Array) -> Any:
        network, state = carry
        updates, state = optimiser.update(jax.grad(objective)(network, key), state)
        return (optax.apply_updates(network, updates), state), None

    network = MLP.of(jax.random.key(0), 1, (32, 32))
    (network, _), _ = jax.jit(partial(jax.lax.scan, step))(
        (network, optimiser.init(network)), jax.random.split(jax.random.key(1), 800)
    )
    x = jnp.linspace(-0.6, 0.6, 13)
    np.testing.assert_allclose(network(x[:, None]), jnp.tanh(delta * x / s**2) / (2 * c), atol=0.03)


def test_a_plan_with_nothing_to_choose_from_does_not_dominate_the_loss() -> None:
    """With samples that hardly differ, λ chosen for the effective sample size is tiny; the loss stays moderate."""
    planner = Planner(K=5, M=16, beta=1e-10, ess=0.2)
    learner = RHIRL(PendulumSimulator(), DEMOS, replace(SMALL, planner=planner), seed=0)
    metrics = learner.step()
    assert float(metrics.lam) < 1e-3
    assert abs(float(metrics.loss)) < 50
