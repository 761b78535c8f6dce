"""MPPI's weights: hand-computed cases, and what must hold for any costs whatever."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from rhirl.planning import (
    Planner,
    effective_sample_size,
    sample,
    temperature_for_ess,
    update,
    weigh,
    weights,
)

Costs = NDArray[np.float32]
always_the_same = settings(derandomize=True, deadline=None, max_examples=60)

jitted_weights = jax.jit(weights)
jitted_weigh = jax.jit(weigh, static_argnames="planner")
jitted_sample = jax.jit(sample, static_argnames="planner")
jitted_temperature = jax.jit(temperature_for_ess)
sizes = st.sampled_from([1, 2, 7])
numbers = st.floats(-(2.0**100), 2.0**100, width=32)
anything = numbers | st.sampled_from([0.0, 1.0, np.inf, -np.inf, np.nan])
temperatures = st.floats(2.0**-20, 2.0**20, width=32)


def costs(elements: st.SearchStrategy[float]) -> st.SearchStrategy[Costs]:
    return sizes.flatmap(lambda M: arrays(np.float32, M, elements=elements))


@st.composite
def shifted_costs(draw: st.DrawFn) -> tuple[Costs, Costs]:
    """Costs up to 1e30, and the same plus a constant, on a grid where float32 adds without rounding."""
    M, unit = draw(sizes), 2.0 ** draw(st.integers(-20, 78))
    steps = st.integers(-(2**20), 2**20)
    S = np.array(draw(st.lists(steps, min_size=M, max_size=M)))
    return (S * unit).astype(np.float32), ((S + draw(steps)) * unit).astype(np.float32)


def test_three_costs_by_hand() -> None:
    lam = 0.5
    S = 7.0 + lam * np.log([1.0, 2.0, 4.0])
    np.testing.assert_allclose(weights(jnp.asarray(S, jnp.float32), lam), np.array([4, 2, 1]) / 7, rtol=1e-5)


def test_control_term_by_hand() -> None:
    U, V = jnp.array([[0.5], [-0.25]]), jnp.array([[[1.0], [0.0]], [[0.0], [1.0]], [[0.0], [0.0]]])
    planner = Planner(K=2, M=3, beta=0.5, lam=1.0, control_term=2.0)
    # c uᵀv / β is 2, −1 and 0 for the three sequences.
    expected = np.exp([-2.0, 1.0, 0.0])
    weighing = jitted_weigh(jnp.zeros(3), U, V, planner)
    np.testing.assert_allclose(weighing.w, expected / expected.sum(), rtol=1e-6)
    assert weighing.lam == 1.0
    assert weighing.ess == pytest.approx(expected.sum() ** 2 / (expected**2).sum(), rel=1e-6)


def test_a_sequence_along_the_plan_gets_less_weight_by_the_right_factor() -> None:
    U = jnp.full((3, 2), 0.2)
    V = jnp.stack([U, -U])
    w = jitted_weigh(jnp.zeros(2), U, V, Planner(K=3, M=2, beta=0.4, control_term=1.0)).w
    assert w[0] < w[1]
    assert w[1] / w[0] == pytest.approx(np.exp(2 * 6 * 0.2**2 / 0.4), rel=1e-5)


def test_the_cheapest_takes_all_as_the_temperature_falls() -> None:
    S = jnp.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(weights(S, 1e-6), [0, 1, 0])
    np.testing.assert_allclose(weights(S, 1e6), [1 / 3] * 3, rtol=1e-5)


@always_the_same
@given(costs(anything), temperatures)
def test_weights_are_a_distribution_whatever_the_costs(S: Costs, lam: float) -> None:
    w = np.asarray(jitted_weights(S, lam))
    assert np.isfinite(w).all()
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1, abs=1e-6)
    if np.isfinite(S).any():
        assert (w[~np.isfinite(S)] == 0).all()
    else:
        np.testing.assert_array_equal(w, np.float32(1 / len(S)))


@always_the_same
@given(costs(anything), temperatures)
def test_a_lower_cost_never_weighs_less_and_ties_weigh_the_same(S: Costs, lam: float) -> None:
    usable = np.isfinite(S)
    w, S = np.asarray(jitted_weights(S, lam))[usable], S[usable]
    order = np.argsort(S, kind="stable")
    assert (np.diff(w[order]) <= 0).all()
    for value in set(S.tolist()):
        assert len(set(w[value == S].tolist())) == 1


@always_the_same
@given(shifted_costs(), temperatures)
def test_a_constant_changes_no_bit(pair: tuple[Costs, Costs], lam: float) -> None:
    np.testing.assert_array_equal(jitted_weights(pair[0], lam), jitted_weights(pair[1], lam))


@always_the_same
@given(costs(anything), temperatures, st.randoms(use_true_random=False))
def test_permuted_costs_get_permuted_weights(S: Costs, lam: float, random: Random) -> None:
    order = list(range(len(S)))
    random.shuffle(order)
    np.testing.assert_allclose(
        jitted_weights(S[order], lam), np.asarray(jitted_weights(S, lam))[order], rtol=1e-5, atol=1e-30
    )


@always_the_same
@given(
    costs(st.floats(-(2.0**70), 2.0**70, width=32)), st.floats(2.0**-10, 2.0**10, width=32), st.integers(-16, 16)
)
def test_scaling_cost_and_temperature_together_changes_no_bit(S: Costs, lam: float, power: int) -> None:
    scale = np.float32(2.0**power)
    a = np.asarray(jitted_weights(S, np.float32(lam)))
    b = np.asarray(jitted_weights(scale * S, scale * np.float32(lam)))
    # Costs below the smallest normal float32 lose bits when they are scaled down.
    np.testing.assert_allclose(a, b, rtol=0, atol=0 if np.abs(S[S != 0]).min(initial=1) > 1e-30 else 1e-6)


@always_the_same
@given(costs(anything), temperatures)
def test_effective_sample_size_lies_between_one_and_m(S: Costs, lam: float) -> None:
    ess = effective_sample_size(jitted_weights(S, lam))
    assert 1 - 1e-5 <= ess <= len(S) * (1 + 1e-5)


def test_effective_sample_size_at_its_ends() -> None:
    assert effective_sample_size(jnp.full(8, 1 / 8)) == pytest.approx(8)
    assert effective_sample_size(jnp.eye(8)[3]) == 1
    assert effective_sample_size(jnp.array([0.5, 0.5, 0.0, 0.0])) == 2


@pytest.mark.parametrize(("control_term", "mean"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)])
def test_a_flat_cost_sends_the_mean_towards_the_base_distribution(control_term: float, mean: float) -> None:
    """E[V] under N(U, βI) weighed by exp(−c uᵀv/β) is (1 − c) U: with c = 1, the mean zero of the base."""
    planner = Planner(K=2, M=8000, beta=0.02, nominal=False)
    U = jnp.array([[0.1, -0.05], [0.05, 0.1]])
    V = jitted_sample(jax.random.key(0), U, planner)
    weighing = weigh(jnp.zeros(planner.M), U, V, replace(planner, control_term=control_term))
    error = np.asarray(update(weighing.w, V, U, jnp.zeros(planner.M)) - mean * U)
    assert np.abs(error).max() < 3.5 * np.sqrt(planner.beta / weighing.ess)
    spread = np.einsum("j,jkm->km", weighing.w, (np.asarray(V) - mean * np.asarray(U)) ** 2)
    assert np.abs(spread / planner.beta - 1).max() < 5 / np.sqrt(weighing.ess)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.9])
def test_the_temperature_holds_the_effective_sample_size(scale: float, fraction: float) -> None:
    S = jnp.asarray(scale * (5 + np.random.default_rng(0).standard_normal(64)), jnp.float32)
    lam = jitted_temperature(S, fraction * 64)
    assert effective_sample_size(jitted_weights(S, lam)) == pytest.approx(fraction * 64, rel=0.01)


def test_weighing_chooses_the_temperature_only_where_it_is_asked_to() -> None:
    S, U, V = jnp.arange(8.0), jnp.zeros((1, 1)), jnp.zeros((8, 1, 1))
    fixed, held = (jitted_weigh(S, U, V, Planner(K=1, M=8, lam=3.0, ess=ess)) for ess in (None, 0.25))
    assert fixed.lam == 3.0
    assert held.ess == pytest.approx(2, rel=0.01)
    assert held.lam == jitted_temperature(S, 2.0)
    np.testing.assert_array_equal(held.w, jitted_weights(S, held.lam))


def test_the_temperature_holds_with_bad_samples_and_a_control_term() -> None:
    rng = np.random.default_rng(1)
    S = jnp.asarray(rng.standard_normal(64), jnp.float32).at[jnp.array([3, 40])].set(jnp.array([jnp.inf, jnp.nan]))
    control = jnp.asarray(0.3 * rng.standard_normal(64), jnp.float32)
    lam = jitted_temperature(S, 10.0, control)
    assert effective_sample_size(jitted_weights(S, lam, control)) == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("S", [[1.0] * 4, [np.inf] * 4, [np.nan] * 4, [1e30, -1e30, 0.0, 0.0], [3.0]])
def test_the_temperature_is_finite_and_positive_where_no_target_can_be_met(S: list[float]) -> None:
    lam = jitted_temperature(jnp.asarray(S), 0.5)
    assert 0 < lam < np.inf


def test_update_is_the_weighted_mean() -> None:
    V = jnp.arange(12.0).reshape(3, 2, 2)
    U = update(jnp.array([0.5, 0.25, 0.25]), V, jnp.zeros((2, 2)), jnp.zeros(3))
    np.testing.assert_allclose(U, [[3, 4], [5, 6]])


@pytest.mark.parametrize("bad", [np.inf, np.nan, -np.inf])
def test_without_a_finite_cost_the_plan_is_kept(bad: float) -> None:
    U, V, S = jnp.full((2, 1), 0.3), jnp.ones((4, 2, 1)), jnp.full(4, bad)
    w = jitted_weigh(S, U, V, Planner(K=2, M=4)).w
    np.testing.assert_array_equal(w, 0.25)
    np.testing.assert_array_equal(update(w, V, U, S), U)
    S = S.at[2].set(5.0)
    np.testing.assert_array_equal(jitted_weigh(S, U, V, Planner(K=2, M=4)).w, [0, 0, 1, 0])
