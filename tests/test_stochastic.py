"""Simulators with noise of their own: S̃ is the mean over M_s rollouts of the same V, for weights and gradient.

On x' = A x + B v + σε with the cost x₁² + x₂², the expectation of S is known: the noise-free cost of V plus the
traces of the covariances, which are the same for every V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from numpy.typing import NDArray

from rhirl.demos import Demonstrations, Metadata
from rhirl.learning import RHIRL, Config, Controller
from rhirl.learning.objective import expected_cost
from rhirl.planning import Planner
from rhirl.simulators import Rollout
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.pendulum import PendulumSimulator

Make = Callable[..., RHIRL]

K, M, SIGMA = 4, 6, 0.3
A, B = np.array([[1.0, 0.3], [-0.2, 0.9]], np.float32), np.array([[0.1], [0.5]], np.float32)
X0 = np.array([0.4, -0.2], np.float32)
V = np.random.default_rng(0).uniform(-1, 1, (M, K, 1)).astype(np.float32)


def linear(x: Array, v: Array) -> Array:
    return jnp.asarray(A) @ x + jnp.asarray(B) @ v


def windy(x: Array, v: Array, key: Array) -> Array:
    return linear(x, v) + SIGMA * jax.random.normal(key, (2,))


def start(key: Array) -> Array:
    return jnp.asarray(X0)


WINDY = JaxSimulator(windy, lambda x: x, start, control_dim=1, stochastic=True)


def square(x: Array) -> Array:
    return jnp.sum(x**2, axis=-1)


def expected_trajectory_cost() -> NDArray[np.float64]:
    """E[S] of each V, exactly."""
    S = np.zeros(M)
    for j in range(M):
        x, spread = X0.astype(np.float64), np.zeros((2, 2))
        S[j] = x @ x
        for v in V[j]:
            x, spread = A @ x + B @ v, A @ spread @ A.T + SIGMA**2 * np.eye(2)
            S[j] += x @ x + np.trace(spread)
    return S


def estimates(M_s: int, repeats: int) -> NDArray[np.float64]:
    """S̃ (repeats, M), each from fresh rollouts laid out as the learner lays them out."""
    demos = Demonstrations(
        np.zeros((1, 2, 2), np.float32),
        np.array([1]),
        Metadata("linear", "None-v0", 0.0, (0.0,), (0,), "this test"),
    )
    config = Config(planner=Planner(K=K, M=M), hidden=(), parallel=1, M_s=M_s)
    learner = RHIRL(WINDY, demos, config)
    found = []
    for i in range(repeats):
        observations, valid, _ = learner._roll_out(jnp.asarray(V)[None], i)
        assert observations.shape == (1, M * M_s, K + 1, 2)
        assert valid.all()
        found.append(expected_cost(jnp.asarray((observations[0] ** 2).sum(axis=(1, 2))), M_s))
    return np.asarray(found, np.float64)


def test_the_estimate_is_unbiased_and_its_variance_falls_as_one_over_m_s() -> None:
    exact, repeats = expected_trajectory_cost(), 400
    assert np.ptp(exact) > 0.5
    single = None
    for M_s in (1, 8):
        found = estimates(M_s, repeats)
        standard_error = found.std(axis=0, ddof=1) / np.sqrt(repeats)
        assert (np.abs(found.mean(axis=0) - exact) < 3.5 * standard_error).all()
        variance = M_s * found.var(axis=0, ddof=1)
        single = variance if single is None else single
        # Over 400 repeats of six sequences the ratio of two variances scatters by some five per cent.
        assert np.mean(variance / single) == pytest.approx(1, abs=0.2)


def test_noise_is_drawn_anew_for_every_rollout_and_every_step() -> None:
    first, second = (estimates(1, 2)[i] for i in range(2))
    assert (first != second).all()
    assert (estimates(1, 2)[0] == first).all()


def test_one_rollout_per_sequence_is_the_deterministic_algorithm_and_costs_nothing() -> None:
    S = jnp.arange(5.0)
    assert expected_cost(S, 1) is S


class Counting(PendulumSimulator):
    """Counts the control sequences rolled out, and keeps the last ones."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.last: NDArray[Any] = np.zeros(0)

    def rollout(self, state: NDArray[np.float64], controls: NDArray[Any], seed: int = 0) -> Rollout:
        self.count += len(controls)
        self.last = controls
        return super().rollout(state, controls, seed)


def test_rolling_out_several_times_a_system_without_noise_changes_nothing_but_the_work(
    make_learner: Make, small: Config
) -> None:
    once, twice = Counting(), Counting()
    a = make_learner(once).learn(10)
    b = make_learner(twice, replace(small, M_s=2)).learn(10)
    M, parallel = small.planner.M, small.parallel
    assert once.last.shape[0] == M
    assert once.count == 10 * M * parallel == a.state.simulated // small.planner.K
    assert twice.count == 2 * once.count == b.state.simulated // small.planner.K
    assert (twice.last[0::2] == twice.last[1::2]).all()
    for x, y in zip(jax.tree.leaves(a.state.network), jax.tree.leaves(b.state.network), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    np.testing.assert_allclose(a.state.U, b.state.U, atol=1e-4)


def test_a_sequence_with_one_bad_rollout_among_several_has_infinite_cost() -> None:
    S = expected_cost(jnp.array([1.0, 3.0, jnp.inf, 2.0, 5.0, 7.0]), 2)
    np.testing.assert_array_equal(S, [2, jnp.inf, 6])


def test_a_controller_with_many_rollouts_plans_as_if_it_knew_the_expected_cost() -> None:
    """The wind adds the same constant to E[S] of every V here, so the expected cost has the weights of calm air."""
    planner = Planner(K=K, M=M, beta=0.3, lam=1.0)
    calm = Controller(JaxSimulator(linear, lambda x: x, start, control_dim=1), square, planner)
    errors = []
    for M_s in (1, 64):
        controller = Controller(WINDY, square, planner, M_s=M_s)
        found = []
        for seed in range(6):
            calm.reset(seed)
            controller.reset(seed)
            found.append(controller.act(X0) - calm.act(X0))
        errors.append(np.sqrt(np.mean(np.square(found))))
    assert errors[0] > 0.03
    assert errors[1] < errors[0] / 3
