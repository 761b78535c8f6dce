"""Sampling around the plan, and what is done to the plan itself: knots, smoothing, warm start."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.signal import savgol_filter

from rhirl.planning import Planner, sample, smooth, warm_start
from rhirl.planning.bases import knot_basis, savitzky_golay

jitted_sample = jax.jit(sample, static_argnames="planner")
KEY = jax.random.key(0)


def draw(U: Array, key: Array = KEY, **settings: Any) -> NDArray[np.float32]:
    K, _ = U.shape
    return np.asarray(jitted_sample(key, U, Planner(K=K, **settings)))


def test_raw_noise_has_covariance_beta() -> None:
    M, beta = 20_000, 0.02
    U = jnp.array([[0.1, -0.2], [0.0, 0.3], [-0.1, 0.0]])
    noise = (draw(U, M=M, beta=beta, nominal=False) - U).reshape(M, 6)
    assert np.abs(noise.mean(axis=0)).max() < 4 * np.sqrt(beta / M)
    np.testing.assert_allclose(np.cov(noise.T), beta * np.eye(6), atol=5 * beta * np.sqrt(2 / M))


def test_noise_on_knots_has_variance_beta_at_every_step_and_is_smooth() -> None:
    M, K, beta = 4000, 10, 0.02
    noise = draw(jnp.zeros((K, 1)), M=M, beta=beta, knots=5, nominal=False)[..., 0]
    np.testing.assert_allclose(noise.var(axis=0), beta, rtol=5 * np.sqrt(2 / M))
    neighbours = np.mean(noise[:, 1:] * noise[:, :-1], axis=0) / beta
    assert neighbours.min() > 0.2


def test_the_nominal_plan_is_the_first_sample_unless_it_is_switched_off() -> None:
    U = jnp.linspace(-0.5, 0.5, 8).reshape(4, 2)
    on, off = (draw(U, M=200, beta=4.0, nominal=nominal) for nominal in (True, False))
    np.testing.assert_array_equal(on[0], U)
    assert (off[0] != np.asarray(U)).all()
    np.testing.assert_array_equal(on[1:], off[1:])


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.5, "knots": 3}])
def test_samples_lie_in_the_control_box(settings: dict[str, Any]) -> None:
    V = draw(jnp.full((4, 2), 0.9), M=200, beta=4.0, **settings)
    assert np.abs(V).max() == 1.0
    assert 0.1 < (np.abs(V) == 1).mean() < 0.9


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_mixture_draws_whole_sequences_around_the_plan_with_probability_alpha(alpha: float) -> None:
    M, beta = 4000, 1e-6
    U = jnp.full((3, 1), 0.5)
    V = draw(U, M=M, beta=beta, alpha=alpha, nominal=False)[..., 0]
    near = (np.abs(V - 0.5) < 6 * np.sqrt(beta)).all(axis=1)
    assert abs(near.mean() - alpha) < 4 * np.sqrt(max(alpha * (1 - alpha), 1e-9) / M)
    anywhere = V[~near]
    if len(anywhere):
        assert abs(anywhere.mean()) < 4 * np.sqrt(1 / 3 / anywhere.size)
        assert anywhere.var() == pytest.approx(1 / 3, rel=5 / np.sqrt(anywhere.size))
        assert np.abs(np.corrcoef(anywhere.T) - np.eye(3)).max() < 4 / np.sqrt(len(anywhere))


def test_the_same_key_gives_the_same_samples_and_another_key_others() -> None:
    U = jnp.zeros((4, 2))
    a, b, c = (draw(U, jax.random.key(seed), M=200, beta=4.0, alpha=0.5, knots=3) for seed in (1, 1, 2))
    assert a.tobytes() == b.tobytes()
    inside = (np.abs(a) < 1) & (np.abs(c) < 1)
    assert (a[1:] != c[1:])[inside[1:]].all()


@pytest.mark.parametrize(("K", "knots"), [(20, 8), (20, 4), (7, 7), (3, 2), (2, 2)])
def test_knots_of_unit_variance(K: int, knots: int) -> None:
    B = knot_basis(K, knots, unit_variance=True)
    assert B.shape == (K, knots)
    np.testing.assert_allclose((B**2).sum(axis=1), 1, rtol=1e-6)


def test_knots_reproduce_the_spline_through_them() -> None:
    at, values = np.linspace(0, 19, 8), np.random.default_rng(0).standard_normal(8)
    np.testing.assert_allclose(knot_basis(20, 8) @ values, CubicSpline(at, values)(np.arange(20)), atol=1e-5)
    cubic = np.poly1d([0.001, -0.02, 0.1, 0.5])
    np.testing.assert_allclose(knot_basis(20, 8) @ cubic(at), cubic(np.arange(20)), atol=1e-5)
    np.testing.assert_allclose(knot_basis(5, 2) @ [0.0, 1.0], np.linspace(0, 1, 5), atol=1e-6)
    np.testing.assert_allclose(knot_basis(6, 6), np.eye(6), atol=1e-6)


@pytest.mark.parametrize(("K", "window", "order"), [(20, 5, 2), (20, 9, 3), (5, 5, 2), (9, 3, 1), (20, 19, 2)])
def test_smoothing_is_scipys_savitzky_golay(K: int, window: int, order: int) -> None:
    U = np.random.default_rng(1).uniform(-0.5, 0.5, (K, 2)).astype(np.float32)
    planner = Planner(K=K, smooth_window=window, smooth_order=order)
    expected = np.clip(savgol_filter(U.astype(np.float64), window, order, axis=0), -1, 1)
    np.testing.assert_allclose(smooth(jnp.asarray(U), planner), expected, atol=1e-6)


def test_smoothing_leaves_polynomials_alone_and_stays_in_the_box() -> None:
    k = jnp.arange(20.0)[:, None]
    parabola = 0.004 * (k - 9) ** 2 - 0.2
    np.testing.assert_allclose(smooth(parabola, Planner()), parabola, atol=1e-6)
    jump = jnp.where(k < 10, -1.0, 1.0)
    assert np.abs(savgol_filter(np.asarray(jump), 5, 2, axis=0)).max() > 1
    assert jnp.abs(smooth(jump, Planner())).max() == 1


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_a_horizon_shorter_than_the_window_shrinks_it(K: int) -> None:
    U = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (K, 1)), jnp.float32)
    np.testing.assert_array_equal(smooth(U, Planner(K=K)), U)
    linear = savitzky_golay(4, 5, 1)
    assert linear is not None
    np.testing.assert_allclose(linear, savgol_filter(np.eye(4), 3, 1, axis=0), atol=1e-6)


def test_smoothing_can_be_switched_off() -> None:
    U = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (20, 1)), jnp.float32)
    np.testing.assert_array_equal(smooth(U, Planner(smooth_window=1)), U)
    assert (smooth(U, Planner()) != U).any()


def test_warm_start_shifts_and_appends_zero() -> None:
    U = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(warm_start(U), [[3, 4], [5, 6], [0, 0]])
    np.testing.assert_array_equal(warm_start(jnp.ones((1, 2))), [[0, 0]])


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"K": 0}, "K"),
        ({"M": 0}, "M"),
        ({"beta": 0.0}, "beta"),
        ({"beta": float("nan")}, "beta"),
        ({"alpha": 1.5}, "alpha"),
        ({"lam": 0.0}, "lam"),
        ({"ess": 0.0}, "ess"),
        ({"ess": 1.5}, "ess"),
        ({"knots": 1}, "knots"),
        ({"knots": 21}, "knots"),
        ({"smooth_window": 4}, "smooth_window"),
        ({"smooth_window": 3, "smooth_order": 3}, "smooth_order"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(setting: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Planner(**setting)
