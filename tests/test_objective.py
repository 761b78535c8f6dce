"""The objective and its gradient, against closed forms and finite differences.

On a linear system x_k = F_k x_0 + G_k V with a quadratic cost, S(V) is quadratic and p_Q(V) ∝ N(V; 0, βI) exp(−S/λ)
is Gaussian, so that E_{p_Q}[∂S/∂θ], the planner's side of the gradient, is known exactly.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import Array
from numpy.typing import NDArray

from rhirl.costs import MLP, Cost, Normaliser
from rhirl.learning.objective import (
    Windows,
    crop,
    expected_cost,
    expert_states,
    expert_windows,
    loss,
    trajectory_cost,
)
from rhirl.planning import Planner, sample, weigh, weights
from rhirl.simulators.jax import JaxSimulator

Floats = NDArray[np.float64]

K = 4
A, B = np.array([[1.0, 0.4], [-0.2, 0.9]]), np.array([[0.1], [0.5]])
X0 = np.array([0.4, -0.2])
PLANNER = Planner(K=K, M=1000, beta=0.03, lam=0.05, control_term=1.0, nominal=False)
SIMULATOR = JaxSimulator(
    lambda x, v: jnp.asarray(A, jnp.float32) @ x + jnp.asarray(B, jnp.float32) @ v,
    observe=lambda x: x,
    reset=lambda key: jnp.asarray(X0, jnp.float32),
    control_dim=1,
)
PLANTED = np.array([0.2, -0.1, 0.8, 0.3, 0.4])


def features(x: Array) -> Array:
    """φ(x), with g(x; θ) = θᵀφ(x): every quadratic without its constant."""
    return jnp.stack([x[..., 0], x[..., 1], x[..., 0] ** 2, x[..., 1] ** 2, x[..., 0] * x[..., 1]], axis=-1)


def first(x: Array) -> Array:
    return x[..., 0]


class Law(NamedTuple):
    """The Gaussian p_Q(V)."""

    mean: Floats
    covariance: Floats


def drift_and_gain() -> list[tuple[Floats, Floats]]:
    """F_k x_0 and G_k for k = 0 … K."""
    found, drift, gain = [], X0, np.zeros((2, K))
    for k in range(K + 1):
        found.append((drift, gain))
        drift, gain = A @ drift, A @ gain
        if k < K:
            gain = gain + B @ np.eye(K)[k : k + 1]
    return found


def optimal_law(theta: Floats, planner: Planner) -> Law:
    q, Q = theta[:2], np.array([[theta[2], theta[4] / 2], [theta[4] / 2, theta[3]]])
    precision, pull = np.eye(K) / planner.beta, np.zeros(K)
    for drift, gain in drift_and_gain():
        precision += 2 * gain.T @ Q @ gain / planner.lam
        pull -= gain.T @ (q + 2 * Q @ drift) / planner.lam
    covariance = np.asarray(np.linalg.inv(precision), np.float64)
    return Law(covariance @ pull, covariance)


def expected_features(law: Law) -> Floats:
    """E_{V ~ law} Σ_k φ(x_k)."""
    total = np.zeros(5)
    for drift, gain in drift_and_gain():
        m, C = drift + gain @ law.mean, gain @ law.covariance @ gain.T
        total += [m[0], m[1], m[0] ** 2 + C[0, 0], m[1] ** 2 + C[1, 1], m[0] * m[1] + C[0, 1]]
    return total


def expert_episodes(theta: Floats, N: int) -> NDArray[np.float32]:
    """N windows (N, K + 1, 2) of an expert who draws V from p_Q(V; θ)."""
    law = optimal_law(theta, PLANNER)
    V = np.random.default_rng(0).multivariate_normal(law.mean, law.covariance, size=N)
    assert np.abs(V).max() < 1
    return SIMULATOR.rollout(X0, V[..., None]).observations


@jax.jit
def propose(key: Array, U: Array) -> Array:
    return sample(key, U, PLANNER)


@partial(jax.jit, static_argnames="planner")
def sampled_gradient(
    theta: Array, windows: Windows, U: Array, V: Array, observations: Array, planner: Planner
) -> Array:
    w = weigh(trajectory_cost(features(observations) @ theta, crop(windows)), U, V, planner)
    return jax.grad(lambda theta: loss(lambda x: features(x) @ theta, windows, observations, w.w, w.lam))(theta)


def windows_of(observations: NDArray[np.float32]) -> Windows:
    N = len(observations)
    return expert_windows(expert_states(observations, np.full(N, K), K), jnp.asarray(0), K)


def gradients(theta: Floats, expert: NDArray[np.float32], planner: Planner, repeats: int) -> Floats:
    U = jnp.array([[-0.1], [0.05], [0.1], [-0.05]])
    windows = windows_of(expert)
    found = []
    for i in range(repeats):
        V = propose(jax.random.key(i), U)
        x = SIMULATOR.rollout(X0, np.asarray(V)).observations
        found.append(sampled_gradient(jnp.asarray(theta, jnp.float32), windows, U, V, jnp.asarray(x), planner))
    return np.asarray(found, np.float64)


def test_the_sampled_gradient_agrees_with_the_exact_one() -> None:
    theta, expert = np.array([-0.1, 0.2, 0.1, 0.5, -0.1]), expert_episodes(PLANTED, 200)
    seen = np.asarray(features(jnp.asarray(expert)).sum(axis=1).mean(axis=0), np.float64)
    exact = (seen - expected_features(optimal_law(theta, PLANNER))) / PLANNER.lam
    estimates = gradients(theta, expert, PLANNER, 60)
    error, standard_error = estimates.mean(axis=0) - exact, estimates.std(axis=0, ddof=1) / np.sqrt(60)
    assert (standard_error < 0.02 * np.abs(exact).max()).all()
    assert (np.abs(error) < 3 * standard_error).all()

    without_control_term = gradients(theta, expert, replace(PLANNER, control_term=0.0), 10).mean(axis=0)
    assert (np.abs(without_control_term - exact) > 10 * standard_error).any()


def test_the_gradient_vanishes_in_expectation_at_the_planted_cost() -> None:
    law = expected_features(optimal_law(PLANTED, PLANNER))
    episodes = np.asarray(features(jnp.asarray(expert_episodes(PLANTED, 4000))).sum(axis=1), np.float64)
    assert (np.abs(episodes.mean(axis=0) - law) < 3 * episodes.std(axis=0) / np.sqrt(4000)).all()


def test_a_planted_quadratic_cost_is_recovered() -> None:
    """Descend on the sampled gradient from θ = 0: the objective is convex here, and fixes shape and scale of g."""
    expert, iterations = expert_episodes(PLANTED, 4000), 300
    windows, U, optimiser = windows_of(expert), jnp.zeros((K, 1)), optax.adam(0.05)
    theta, mean = jnp.zeros(5), np.zeros(5)
    state = optimiser.init(theta)
    for i in range(iterations):
        V = propose(jax.random.key(i), U)
        x = jnp.asarray(SIMULATOR.rollout(X0, np.asarray(V)).observations)
        step, state = optimiser.update(sampled_gradient(theta, windows, U, V, x, PLANNER), state)
        theta = theta + step
        if i >= iterations // 2:
            mean += np.asarray(theta) / (iterations // 2)
    phi = np.asarray(features(jnp.asarray(expert.reshape(-1, 2))))
    learned, planted = phi @ mean, phi @ PLANTED
    assert np.corrcoef(learned, planted)[0, 1] > 0.99
    assert np.polyfit(planted, learned, 1)[0] == pytest.approx(1, abs=0.15)


def numpy_network(network: MLP, normalise: Normaliser, x: Floats) -> Floats:
    """The cost once more, in float64 and in NumPy."""
    z = np.clip((x - np.asarray(normalise.mean, np.float64)) / np.asarray(normalise.deviation, np.float64), -5, 5)
    weights = [np.asarray(weight, np.float64) for weight in network.weights]
    for weight, bias in zip(weights[:-1], network.biases, strict=True):
        z = np.maximum(z @ weight + np.asarray(bias, np.float64), 0)
    return (z @ weights[-1])[..., 0]


@pytest.mark.parametrize("M_s", [1, 2])
def test_the_gradient_is_that_of_the_sampled_likelihood_by_finite_differences(M_s: int) -> None:
    """With the weights of the same θ, the gradient is that of mean S_E/λ + log Σ_j exp(−S̃_j/λ − control_j)."""
    rng, M, lam = np.random.default_rng(0), 12, 0.7
    expert, planned = rng.standard_normal((5, K + 1, 2)), rng.standard_normal((M * M_s, K + 1, 2))
    control = rng.standard_normal(M)
    windows = windows_of(expert.astype(np.float32))
    normalise, network = Normaliser.of(expert), MLP.of(jax.random.key(1), 2, (8, 8))

    def likelihood(network: MLP) -> float:
        S_expert = numpy_network(network, normalise, expert).sum(axis=-1).mean()
        S = numpy_network(network, normalise, planned).sum(axis=-1).reshape(M, M_s).mean(axis=1)
        return float(S_expert / lam + np.log(np.exp(-S / lam - control).sum()))

    def gradient(network: MLP, observations: Array) -> MLP:
        S = expected_cost(Cost(normalise, network)(observations).sum(axis=-1), M_s)
        w = weights(S, lam, jnp.asarray(control, jnp.float32))
        return jax.grad(lambda n: loss(Cost(normalise, n), windows, observations, w, jnp.asarray(lam), M_s=M_s))(
            network
        )

    found = jax.tree.map(np.asarray, jax.jit(gradient)(network, jnp.asarray(planned, jnp.float32)))
    leaves, structure = jax.tree.flatten(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), network))
    for i, leaf in enumerate(leaves):
        for entry in rng.choice(leaf.size, min(6, leaf.size), replace=False):
            ends = []
            for step in (1e-6, -1e-6):
                moved = leaf.copy()
                moved.flat[entry] += step
                ends.append(likelihood(jax.tree.unflatten(structure, [*leaves[:i], moved, *leaves[i + 1 :]])))
            slope = (ends[0] - ends[1]) / 2e-6
            assert jax.tree.leaves(found)[i].flat[entry] == pytest.approx(slope, rel=2e-4, abs=2e-5)


def test_loss_by_hand() -> None:
    expert = np.array([[[0.0], [1.0]], [[2.0], [5.0]]], np.float32)
    experts = expert_states(expert, np.array([1, 1]), 1)
    windows = expert_windows(experts, jnp.asarray(0), 1)
    rollouts = jnp.array([[[1.0], [1.0]], [[1.0], [3.0]]])
    w, lam = jnp.array([0.25, 0.75]), jnp.asarray(0.5)
    # Experts: mean of 1 and 7; planner: 0.25 · 2 + 0.75 · 4.
    assert loss(first, windows, rollouts, w, lam) == pytest.approx((4 - 3.5) / 0.5)
    squares = (0 + 1 + 4 + 25) / 2 + 0.25 * 2 + 0.75 * 10
    assert loss(first, windows, rollouts, w, lam, penalty=0.1) == pytest.approx((0.5 + 0.1 * squares) / 0.5)


def test_windows_near_the_end_are_cropped_on_both_sides() -> None:
    T, horizon = 6, 4
    x = np.arange(2 * (T + 1), dtype=np.float32).reshape(2, T + 1, 1)
    experts = expert_states(x, np.array([T, T]), horizon)
    g = jnp.ones((3, horizon + 1))
    for t in range(T + 1):
        windows = expert_windows(experts, jnp.asarray(t), horizon)
        left = min(horizon, T - t) + 1
        np.testing.assert_array_equal(crop(windows), [1.0] * left + [0.0] * (horizon + 1 - left))
        np.testing.assert_array_equal(windows.observations[:, :left], x[:, t : t + left])
        assert windows.share.sum() == left
        np.testing.assert_array_equal(trajectory_cost(g, crop(windows)), left)


@pytest.mark.parametrize("t", [0, 2, 3, 5, 6])
def test_a_constant_in_the_cost_has_no_gradient_at_any_time(t: int) -> None:
    """Windows of unequal length on the two sides would move g by a constant for no reason."""
    x = np.random.default_rng(0).standard_normal((3, 7, 2)).astype(np.float32)
    windows = expert_windows(expert_states(x, np.array([6, 3, 5]), 4), jnp.asarray(t), 4)
    rollouts = jnp.asarray(np.random.default_rng(1).standard_normal((5, 5, 2)), jnp.float32)
    w = jnp.array([0.1, 0.2, 0.3, 0.15, 0.25])
    slope = jax.grad(lambda c: loss(lambda x: x[..., 0] + c, windows, rollouts, w, jnp.asarray(0.1)))(0.0)
    assert abs(slope) < 1e-5


def test_ragged_demonstrations_share_each_time_among_those_still_there() -> None:
    x = np.arange(18, dtype=np.float32).reshape(3, 6, 1)
    experts = expert_states(x, np.array([5, 2, 3]), 3)
    windows = expert_windows(experts, jnp.asarray(2), 3)
    np.testing.assert_allclose(
        windows.share, [[1 / 3, 1 / 2, 1, 1], [1 / 3, 0, 0, 0], [1 / 3, 1 / 2, 0, 0]], rtol=1e-6
    )
    np.testing.assert_array_equal(crop(windows), [1, 1, 1, 1])
    after = expert_windows(experts, jnp.asarray(5), 3)
    np.testing.assert_array_equal(crop(after), [1, 0, 0, 0])
    np.testing.assert_array_equal(after.share[:, 0], [1, 0, 0])


def test_what_lies_behind_the_end_of_a_demonstration_is_never_seen() -> None:
    x = np.random.default_rng(0).standard_normal((2, 8, 2)).astype(np.float32)
    other = x.copy()
    other[1, 5:] = 1e6
    lengths = np.array([7, 4])
    for t in range(8):
        a, b = (expert_windows(expert_states(y, lengths, 3), jnp.asarray(t), 3) for y in (x, other))
        np.testing.assert_array_equal(a.share[..., None] * a.observations, b.share[..., None] * b.observations)


def test_the_state_where_the_window_starts_counts_on_both_sides() -> None:
    """x_t is the same for all samples and cancels in the weights, but expert and learner stand at different x_t."""
    windows = windows_of(np.full((1, K + 1, 2), 2.0, np.float32))
    rollouts, w = jnp.zeros((2, K + 1, 2)), jnp.array([0.5, 0.5])
    before = loss(first, windows, rollouts, w, jnp.asarray(1.0))
    after = loss(first, windows, rollouts.at[:, 0].set(1.0), w, jnp.asarray(1.0))
    assert before == pytest.approx(2 * (K + 1))
    assert before - after == pytest.approx(1)
