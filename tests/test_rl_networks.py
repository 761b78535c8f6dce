"""The actor's densities and the networks' shapes, against numbers known from elsewhere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from rhirl.rl.networks import MLP, Actor, Critic, act, log_density, sample, to_numpy

KEY = jax.random.PRNGKey(0)


pytestmark = pytest.mark.usefixtures("quick_compilation")


def constant_actor(mean: float, log_std: float) -> Actor:
    """An actor of one control that ignores its input."""
    return Actor(MLP((jnp.zeros((1, 2)),), (jnp.array([mean, log_std]),), (), ()))


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.7, -1.0), (-2.0, 0.5)])
def test_the_density_integrates_to_one(mean: float, log_std: float) -> None:
    edges = np.tanh(np.linspace(-8, 8, 200_001))
    u = (edges[1:] + edges[:-1]) / 2
    log_p = log_density(constant_actor(mean, log_std), jnp.zeros((len(u), 1)), jnp.asarray(u, jnp.float32)[:, None])
    assert np.sum(np.exp(np.asarray(log_p, np.float64)) * np.diff(edges)) == pytest.approx(1.0, abs=2e-3)


def test_the_density_is_that_of_a_squashed_normal() -> None:
    u = np.array([-0.999, -0.5, 0.0, 0.3, 0.99])
    exact = norm(0.2, np.exp(-0.5)).logpdf(np.arctanh(u)) - np.log1p(-(u**2))
    ours = log_density(constant_actor(0.2, -0.5), jnp.zeros((5, 1)), jnp.asarray(u)[:, None])
    np.testing.assert_allclose(ours, exact, rtol=1e-4)


@pytest.mark.parametrize("u", [1.0, -1.0])
def test_the_density_at_the_edge_is_finite_and_that_of_its_neighbour_inside(u: float) -> None:
    inside = np.float64(np.sign(u)) * (1 - 2.0**-24)
    exact = norm(0.0, 1.0).logpdf(np.arctanh(inside)) - np.log((1 - inside) * (1 + inside))

    def of_mean(mean: jax.Array) -> jax.Array:
        actor = Actor(MLP((jnp.zeros((1, 2)),), (jnp.stack([mean, jnp.zeros(())]),), (), ()))
        return log_density(actor, jnp.zeros((1, 1)), jnp.array([[u]]))[0]

    value, slope = jax.value_and_grad(of_mean)(jnp.zeros(()))
    assert value == pytest.approx(exact, rel=1e-5)
    assert slope == pytest.approx(np.arctanh(inside), rel=1e-5)


def test_a_drawn_control_has_the_density_it_came_with() -> None:
    actor = Actor.create(KEY, 4, 3, (16,))
    x, noise = jax.random.normal(KEY, (32, 4)), jax.random.normal(jax.random.PRNGKey(1), (32, 3))
    u, log_pi = sample(actor, x, noise)
    np.testing.assert_allclose(log_pi, log_density(actor, x, u), rtol=1e-3, atol=1e-3)


def test_the_density_of_a_drawn_control_stays_right_where_tanh_saturates() -> None:
    z, noise = 20.0, 0.5
    u, log_pi = sample(constant_actor(z - noise, 0.0), jnp.zeros((1, 1)), jnp.array([[noise]]))
    assert u[0, 0] == 1.0
    assert log_pi[0] == pytest.approx(norm.logpdf(noise) - 2 * (np.log(2) - z), rel=1e-6)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_numpy_and_jax_compute_the_same_network(layer_norm: bool) -> None:
    actor = Actor.create(KEY, 5, 2, (32, 32), layer_norm=layer_norm)
    x = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    noise = np.zeros((7, 2), np.float32)
    drawn, _ = sample(actor, jnp.asarray(x), jnp.asarray(noise))
    np.testing.assert_allclose(act(to_numpy(actor), x), drawn, atol=1e-6)
    assert act(to_numpy(actor), x).dtype == np.float32


def test_an_ensemble_is_its_members() -> None:
    critic = Critic.create(KEY, 3, 2, (16, 16), count=4, layer_norm=True)
    x, u = jax.random.normal(KEY, (6, 3)), jax.random.normal(KEY, (6, 2))
    together = critic(x, u)
    assert together.shape == (4, 6)
    for e in range(4):
        alone = jax.tree.map(lambda a, e=e: a[e], critic)
        np.testing.assert_allclose(together[e], alone(x, u), rtol=1e-5, atol=1e-6)
    assert np.std(np.asarray(together), axis=0).min() > 0


def test_layer_norm_forgets_the_scale_of_its_input() -> None:
    critic = Critic.create(KEY, 3, 1, (64,), layer_norm=True)
    critic = jax.tree.map(lambda a: a if a.shape != (2, 64) or not bool(jnp.any(a != a.round())) else 0 * a, critic)
    x, u = 10 * jax.random.normal(KEY, (6, 3)), 10 * jax.random.normal(KEY, (6, 1))
    np.testing.assert_allclose(critic(x, u), critic(1000 * x, 1000 * u), rtol=1e-3)
