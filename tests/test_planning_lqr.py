"""On a linear system with a quadratic cost, MPPI's plan tends to the optimum that a Riccati recursion gives.

With the full control term, MPPI's target p_Q(V) ∝ N(V; 0, βI) exp(−S(V)/λ) is Gaussian here, and its mean is the
plan that minimises S(V) + (λ / 2β) Σ_k v_kᵀv_k. Without the control term each update is a proximal step, so the
plan goes on to the minimiser of S alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from numpy.typing import NDArray

from rhirl.planning import Planner, sample, update, weigh
from rhirl.simulators.jax import JaxSimulator

K = 5
A, B, Q = np.array([[1.0, 0.3], [-0.1, 0.9]]), np.array([[0.1], [0.4]]), np.diag([1.0, 0.3])
X0 = np.array([0.2, 0.05])
SAMPLING = Planner(K=K, M=3000, beta=0.02, smooth_window=1)
SIMULATOR = JaxSimulator(
    lambda x, v: jnp.asarray(A, jnp.float32) @ x + jnp.asarray(B, jnp.float32) @ v,
    observe=lambda x: x,
    reset=lambda key: jnp.asarray(X0, jnp.float32),
    control_dim=1,
)


def riccati_plan(R: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minimise Σ_{k=1…K} x_kᵀ Q x_k + Σ_{k<K} v_kᵀ R v_k from X0 by dynamic programming."""
    P, gains = Q, []
    for _ in range(K):
        gain = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        gains.append(gain)
        P = Q + A.T @ P @ (A - B @ gain)
    x, plan = X0, []
    for gain in reversed(gains):
        plan.append(-gain @ x)
        x = A @ x + B @ plan[-1]
    return np.array(plan)


@jax.jit
def draw(key: Array, U: Array) -> Array:
    return sample(key, U, SAMPLING)


@partial(jax.jit, static_argnames="planner")
def improve(U: Array, V: Array, observations: Array, planner: Planner) -> Array:
    S = jnp.einsum("jkn,nl,jkl->j", observations, jnp.asarray(Q, jnp.float32), observations)
    return update(weigh(S, U, V, planner).w, V, U, S)


def iterate(planner: Planner, iterations: int, average: int) -> NDArray[np.float64]:
    """Plan again and again from X0, and return the mean of the last plans."""
    U, plans = jnp.zeros((K, 1)), []
    for i in range(iterations):
        V = draw(jax.random.key(i), U)
        U = improve(U, V, SIMULATOR.rollout(X0, np.asarray(V)).observations, planner)
        plans.append(np.asarray(U, np.float64))
    return np.mean(plans[-average:], axis=0)


@pytest.mark.parametrize("lam", [0.005, 0.02])
def test_with_the_control_term_the_plan_is_the_regulator_with_control_cost_lambda_over_two_beta(lam: float) -> None:
    planner = replace(SAMPLING, lam=lam, control_term=1.0)
    optimum = riccati_plan(np.eye(1) * lam / (2 * planner.beta))
    assert np.abs(optimum).max() > 0.15
    np.testing.assert_allclose(iterate(planner, 30, 20), optimum, atol=0.004)


def test_without_the_control_term_the_plan_goes_on_to_the_cheapest_states() -> None:
    planner = replace(SAMPLING, lam=0.001)
    plan = iterate(planner, 60, 10)
    best, start = cost(riccati_plan(1e-9 * np.eye(1))), cost(np.zeros((K, 1)))
    assert start > 3 * best
    assert best <= cost(plan) < best + 0.01 * (start - best)


def cost(plan: NDArray[np.float64]) -> float:
    x, total = X0, 0.0
    for v in plan:
        x = A @ x + B @ v
        total += float(x @ Q @ x)
    return total
