"""The rivals' mathematics against known answers."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from rhirl.baselines.airl import AIRL, AIRLConfig, Networks, advantage, logits
from rhirl.baselines.airl import Parameters as AIRLParameters
from rhirl.baselines.discriminator import adam, cross_entropy, descend, gradient_penalty, logit, loss
from rhirl.baselines.episodes import Episodes, follow
from rhirl.baselines.firl import covariance, surprise
from rhirl.baselines.gail import form, recent
from rhirl.baselines.practice import ImitationConfig, stationary
from rhirl.costs import MLP, Cost, Normaliser
from rhirl.rl import Actor, Replay, SACConfig, Transitions, log_density
from rhirl.rl.replay import insert, pack

PLAIN = Normaliser(jnp.zeros(1), jnp.ones(1), jnp.asarray(100.0))


pytestmark = pytest.mark.usefixtures("quick_compilation")


def linear(weights: Any) -> MLP:
    """g(x) = w·x: on one-hot observations, a table."""
    return MLP((jnp.asarray(weights, jnp.float32)[:, None],), ())


def test_the_discriminator_recovers_the_density_ratio_of_two_gaussians() -> None:
    """log N(x; ½, 1) − log N(x; −½, 1) = x."""
    network = MLP.of(jax.random.key(0), 1, (32,))
    optimiser = adam(3e-3, 0.0)

    @jax.jit
    def train(network: MLP, moments: Any) -> MLP:
        def one(carry: tuple[MLP, Any], key: Array) -> tuple[tuple[MLP, Any], None]:
            network, moments = carry
            noise = jax.random.normal(key, (2, 512, 1))
            gradient = jax.grad(loss, has_aux=True)(network, PLAIN, noise[0] + 0.5, noise[1] - 0.5, None, 0.0, key)
            return descend(optimiser, gradient[0], moments, network), None

        return jax.lax.scan(one, (network, moments), jax.random.split(jax.random.key(1), 1500))[0][0]

    trained = Cost(PLAIN, train(network, optimiser.init(network)))
    x = np.linspace(-2, 2, 17)[:, None]
    np.testing.assert_allclose(logit(trained, jnp.asarray(x)), x[:, 0], atol=0.2)


def test_states_that_stand_for_many_steps_count_for_many() -> None:
    expert, learner = jnp.array([0.3, -0.2]), jnp.array([1.0, -0.5])
    repeated = cross_entropy(expert, jnp.array([1.0, 1.0, 1.0, -0.5]))
    assert cross_entropy(expert, learner, jnp.array([3.0, 1.0])) == pytest.approx(float(repeated))


def test_the_gradient_penalty_of_a_linear_logit_is_its_slopes_distance_from_one() -> None:
    z = jax.random.normal(jax.random.key(0), (2, 8, 2))
    assert gradient_penalty(linear([3.0, 4.0]), z[0], z[1], jax.random.key(1)) == pytest.approx(16.0, rel=1e-5)
    flat = jax.grad(lambda w: gradient_penalty(linear(w), z[0], z[1], jax.random.key(1)))(jnp.zeros(2))
    assert np.isfinite(flat).all()


def test_the_forms_of_gails_reward() -> None:
    logits = jnp.array([-3.0, -1.0, 0.0, 2.0, 3.0])
    D = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
    np.testing.assert_allclose(form("logit", logits), logits)
    np.testing.assert_allclose(form("positive", logits), -np.log1p(-D), rtol=1e-5)
    np.testing.assert_allclose(form("negative", logits), np.log(D), rtol=1e-5)
    np.testing.assert_allclose(form("positive", logits) + form("negative", logits), logits, rtol=1e-6)
    assert (form("positive", logits) >= 0).all()
    assert (form("negative", logits) <= 0).all()


@pytest.mark.parametrize("absorbing", [True, False])
def test_an_absorbing_state_is_paid_for_ever(absorbing: bool) -> None:
    config = ImitationConfig(sac=SACConfig(gamma=0.9), absorbing=absorbing)
    x, x_next = jnp.array([[1.0], [2.0]]), jnp.array([[3.0], [4.0]])
    batch = Transitions(x, None, None, jnp.array([0.0, 1.0]), x_next)
    paid = stationary(config, lambda x: x[..., 0], batch)
    np.testing.assert_allclose(paid, [1.0, 2.0 + (4.0 * 9.0 if absorbing else 0.0)], rtol=1e-5)


def test_only_the_latest_transitions_are_drawn_wherever_the_ring_stands() -> None:
    replay = Replay.create(10, 1, 1)
    for start in range(0, 26, 2):
        x = np.arange(start, start + 2, dtype=np.float32)
        batch = Transitions(x[:, None], x[:, None], x, x, x[:, None])
        replay = insert(replay, jnp.asarray(pack(batch)))
    drawn = recent(replay, jax.random.key(0), 200, 4)
    assert set(np.asarray(drawn.r).tolist()) == {22.0, 23.0, 24.0, 25.0}


def test_episodes_are_followed_through_falls_and_time_limits() -> None:
    """Two environments, T = 3: the first falls after two steps, the second runs out of time after three."""
    x = np.array([[0], [10], [1], [11], [5], [12]], np.float32)
    x_next = np.array([[1], [11], [2], [12], [6], [13]], np.float32)
    fell = np.array([0, 0, 1, 0, 0, 0], np.float32)
    u = np.zeros((6, 1), np.float32)
    episodes = Episodes.begin(x[:2], 3, 2)
    halves = [Transitions(*(a[part] for a in (x, u, fell, fell, x_next))) for part in (slice(0, 2), slice(2, 6))]
    standing = []
    for half in halves:
        episodes, counts = follow(episodes, half)
        standing += counts.tolist()
    assert standing == [1, 1, 2, 1, 1, 1]
    np.testing.assert_array_equal(episodes.finished[..., 0], [[0, 1, 2, 2], [10, 11, 12, 13]])
    assert (int(episodes.total), episodes.ages.tolist()) == (2, [1, 0])


DIVERGENCES = {
    "js": lambda u: u * jnp.log(u) - (1 + u) * jnp.log((1 + u) / 2),
    "rkl": lambda u: -jnp.log(u),
    "fkl": lambda u: u * jnp.log(u),
}


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_firls_gradient_is_that_of_the_state_marginal_on_a_chain(divergence: str) -> None:
    """Five states in a row, steps of −1, 0, 1: all 81 trajectories of the policy that is optimal for r."""
    S, T, alpha = 5, 4, 0.7
    moves = np.array(list(product((-1, 0, 1), repeat=T)))
    states = np.zeros((len(moves), T + 1), int) + 2
    for t in range(T):
        states[:, t + 1] = np.clip(states[:, t] + moves[:, t], 0, S - 1)
    states = states[:, 1:]
    visits = jnp.asarray((states[:, :, None] == np.arange(S)).mean(1))
    expert = jnp.array([0.1, 0.15, 0.2, 0.25, 0.3])
    r = jnp.array([0.3, -0.5, 0.2, 0.8, -0.1])

    def trajectories(r: Array) -> Array:
        return jax.nn.softmax(r[states].sum(-1) / alpha)

    def exact(r: Array) -> Array:
        marginal = trajectories(r) @ visits
        return jnp.vdot(marginal, DIVERGENCES[divergence](expert / marginal))

    p = trajectories(r)
    h = surprise(divergence, jnp.log(expert) - jnp.log(p @ visits))[states]
    estimated = jax.grad(lambda r: covariance(h, r[states], p) / alpha)(r)
    np.testing.assert_allclose(estimated, jax.grad(exact)(r), atol=2e-6)

    drawn = jax.random.choice(jax.random.key(0), len(states), (20_000,), p=p)
    sampled = jax.grad(lambda r: covariance(h[drawn], r[states[drawn]], jnp.ones(len(drawn))) / alpha)(r)
    np.testing.assert_allclose(sampled, estimated, atol=0.05 * float(jnp.abs(estimated).max()))


def test_firl_ignores_episodes_of_weight_zero() -> None:
    h, r = jax.random.normal(jax.random.key(0), (2, 3, 4))
    two = covariance(h[:2], r[:2], jnp.ones(2))
    assert covariance(h, r, jnp.array([1.0, 1.0, 0.0])) == pytest.approx(float(two), abs=1e-6)


def soft_policy(f: np.ndarray, following: np.ndarray, gamma: float) -> np.ndarray:
    """log π (S, A) that is optimal for rewards f (S, A) at temperature one, by soft value iteration."""
    V = np.zeros(len(f))
    for _ in range(100):
        Q = f + gamma * V[following]
        V = np.logaddexp.reduce(Q, axis=1)
    return Q - V[:, None]


def stationary_distribution(pi: np.ndarray, following: np.ndarray) -> np.ndarray:
    """How often each state is visited in the long run."""
    P = np.zeros((len(pi), len(pi)))
    for a in range(pi.shape[1]):
        P[np.arange(len(pi)), following[:, a]] += pi[:, a]
    return np.linalg.matrix_power(P, 128)[0]


def test_airl_recovers_a_planted_state_reward_up_to_a_constant() -> None:
    """A ring of six states: stay or move on. The policy is exactly optimal for f as learned so far.

    It is so before every step of the discriminator: with several large steps against one policy, the two would
    circle the answer.
    """
    S, gamma = 6, 0.9
    following = np.stack([np.arange(S), (np.arange(S) + 1) % S], axis=1)
    planted = np.array([1.0, -0.5, 0.3, 0.0, -1.0, 0.2])
    expert = soft_policy(np.repeat(planted[:, None], 2, axis=1), following, gamma)
    config = AIRLConfig(sac=SACConfig(gamma=gamma))
    normalise = Normaliser(jnp.zeros(S), jnp.ones(S), jnp.asarray(10.0))
    networks = Networks(linear(np.zeros(S)), linear(np.zeros(S)))
    optimiser = adam(0.02, 0.0)
    moments = optimiser.init(networks)
    eye = jnp.eye(S)
    s, a = (index.ravel() for index in np.meshgrid(np.arange(S), np.arange(2), indexing="ij"))
    every = Transitions(eye[s], None, None, jnp.zeros(2 * S), eye[following[s, a]])

    @jax.jit
    def improve(networks: Networks, moments: Any, log_pi: Array, shares: Array) -> tuple[Any, Any, Array]:
        def objective(networks: Networks) -> Array:
            apart = advantage(config, networks, normalise, every) - log_pi
            return jnp.vdot(shares[0], jax.nn.softplus(-apart)) + jnp.vdot(shares[1], jax.nn.softplus(apart))

        networks, moments = descend(optimiser, jax.grad(objective)(networks), moments, networks)
        return networks, moments, advantage(config, networks, normalise, every)

    def occupancy(log_pi: np.ndarray) -> np.ndarray:
        pi = np.exp(log_pi)
        return (stationary_distribution(pi, following)[:, None] * pi).ravel()

    f = advantage(config, networks, normalise, every)
    for _ in range(1200):
        log_pi = soft_policy(np.asarray(f).reshape(S, 2), following, gamma)
        shares = jnp.asarray(np.stack([occupancy(expert), occupancy(log_pi)]))
        networks, moments, f = improve(networks, moments, jnp.asarray(log_pi.ravel()), shares)
    recovered = -np.asarray(networks.cost.weights[0])[:, 0]
    np.testing.assert_allclose(recovered - recovered.mean(), planted - planted.mean(), atol=0.005)
    np.testing.assert_allclose(log_pi, expert, atol=0.005)


@pytest.mark.parametrize("u", [-1.0, 1.0, 0.0])
@pytest.mark.parametrize("absorbing", [True, False])
def test_airls_logits_and_their_gradients_are_finite_at_the_edge(u: float, absorbing: bool) -> None:
    config = AIRLConfig(absorbing=absorbing)
    keys = jax.random.split(jax.random.key(0), 3)
    networks = Networks(MLP.of(keys[0], 1, (8,)), MLP.of(keys[1], 1, (8,)))
    actor = Actor.create(keys[2], 1, 2, (8,))
    x = jnp.ones((2, 1))
    batch = Transitions(x, jnp.full((2, 2), u), None, jnp.array([0.0, 1.0]), x)

    def total(networks: Networks, actor: Actor) -> Array:
        return logits(config, networks, PLAIN, actor, batch).sum()

    value, gradient = jax.jit(jax.value_and_grad(total, argnums=(0, 1)))(networks, actor)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_airls_density_has_a_floor_where_controls_are_uniform_now_and_then() -> None:
    """The density the discriminator is told is a mixture: of the policy's and of 2⁻ᵐ."""
    keys = jax.random.split(jax.random.key(0), 3)
    networks = Networks(MLP.of(keys[0], 1, (8,)), MLP.of(keys[1], 1, (8,)))
    actor = jax.tree.map(jnp.zeros_like, Actor.create(keys[2], 1, 2, (8,)))
    x = jnp.ones((2, 1))
    batch = Transitions(x, jnp.array([[0.0, 0.0], [0.999, 0.999]]), None, jnp.zeros(2), x)
    own = np.asarray(log_density(actor, x, batch.u))
    f = advantage(AIRLConfig(), networks, PLAIN, batch)
    for share in (0.0, 0.05, 0.5):
        told = f - logits(AIRLConfig(uniform=share, edge=0.0), networks, PLAIN, actor, batch)
        np.testing.assert_allclose(np.exp(told), (1 - share) * np.exp(own) + share / 4, rtol=1e-4)


def test_airls_unshaped_pay_at_an_end() -> None:
    """Where r alone is paid, the last state is paid for ever as with the other methods."""
    x, x_next = jnp.array([[1.0], [1.0]]), jnp.array([[2.0], [2.0]])
    batch = Transitions(x, None, None, jnp.array([0.0, 1.0]), x_next)
    parameters = AIRLParameters(PLAIN, Networks(linear([-3.0]), linear([0.5])), None)
    sac = SACConfig(gamma=0.9)
    paid = AIRL.reward(AIRLConfig(sac=sac, shaped=False), parameters, batch)
    np.testing.assert_allclose(paid, [3.0, 3 + 6 * 9], rtol=1e-5)
    paid = AIRL.reward(AIRLConfig(sac=sac, shaped=False, absorbing=False), parameters, batch)
    np.testing.assert_allclose(paid, [3.0, 3.0], rtol=1e-5)


def test_airls_advantage_at_an_end() -> None:
    """With absorbing states an end is worth r/(1 − γ), without them nothing."""
    x, x_next = jnp.array([[1.0], [1.0]]), jnp.array([[2.0], [2.0]])
    batch = Transitions(x, None, None, jnp.array([0.0, 1.0]), x_next)
    networks = Networks(linear([-3.0]), linear([0.5]))
    sac = SACConfig(gamma=0.9)
    f = advantage(AIRLConfig(sac=sac), networks, PLAIN, batch)
    np.testing.assert_allclose(f, [3 + 0.9 * 1 - 0.5, 3 + 0.9 * 60 - 0.5], rtol=1e-5)
    f = advantage(AIRLConfig(sac=sac, absorbing=False), networks, PLAIN, batch)
    np.testing.assert_allclose(f, [3 + 0.9 * 1 - 0.5, 3 - 0.5], rtol=1e-5)
