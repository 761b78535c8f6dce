"""One control step as pure functions: what Algorithm 1 does between two calls of the simulator.

    propose   V ~ N(U, βI)                                   line 6
    plan      w ∝ exp(−S/λ), U ← Σ w V, shift, next V        lines 7, 10 and 13
    learn     θ ← θ − α ∂L/∂θ                                lines 8 and 9

All are batched over `B` episodes side by side, each at its own time t.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from rhirl.costs import Cost, Network
from rhirl.learning.config import Config
from rhirl.learning.objective import (
    ExpertStates,
    crop,
    expected_cost,
    expert_windows,
    loss,
    resample,
    trajectory_cost,
)
from rhirl.planning import Planner, sample, smooth, update, warm_start, weigh

BLUR = 1  # the stream of random numbers that blurs; sampling uses the step's key itself
CACHED = 1_200_000
"""Numbers of a layer that stay in a processor's cache while a cost network is differentiated."""


class Metrics(NamedTuple):
    """What one control step reports, averaged over the B episodes."""

    loss: Array
    """Expert minus planner trajectory cost over λ: zero when the two cannot be told apart."""
    ess: Array
    """Effective sample size of the weights."""
    lam: Array
    """Temperature λ: the median, for it has no bound where fewer rollouts survive than the ESS asks for."""
    spread: Array
    """Standard deviation of S over the samples: the scale of the learned cost as the planner sees it."""


class Planned(NamedTuple):
    """The weights behind a plan, for each of the B episodes."""

    w: Array
    """(B, M) weights; all zero where no rollout was usable."""
    lam: Array
    """(B,)"""
    ess: Array
    """(B,)"""
    spread: Array
    """(B,) deviation of S over the usable rollouts."""


@partial(jax.jit, static_argnames="planner")
def propose(key: Array, index: Array, U: Array, planner: Planner, guide: Array | None = None) -> Array:
    """Sample V (B, M, K, m) around the nominal plans U (B, K, m), some of them around a guide (B, K, m)."""
    keys = jax.random.split(jax.random.fold_in(key, index), U.shape[0])
    return jax.vmap(partial(sample, planner=planner))(keys, U, guide=guide)


@partial(jax.jit, static_argnames="config")
def plan(
    cost: Cost,
    U: Array,
    V: Array,
    observations: Array,
    valid: Array,
    t: Array,
    experts: ExpertStates,
    key: Array,
    index: Array,
    config: Config,
) -> tuple[Array, Array, Array | None, Planned]:
    """Weigh the rollouts and improve the plans; return the shifted U, the control u to execute and the next V."""
    planner = config.planner

    def one(U: Array, V: Array, g: Array, valid: Array, t: Array) -> tuple[Array, Array, Planned]:
        mask = crop(expert_windows(experts, t, planner.K))
        S = expected_cost(jnp.where(valid, trajectory_cost(g, mask), jnp.inf), config.M_s)
        weighing = weigh(S, U, V, planner)
        U = smooth(update(weighing.w, V, U, S), planner)
        # Without a usable rollout there is nothing to learn from: no weight at all, and `learn` stands still.
        w = jnp.where(jnp.isfinite(S), weighing.w, 0.0)
        spread = jnp.where(jnp.isfinite(S).any(), jnp.std(S, where=jnp.isfinite(S)), 0.0)
        return warm_start(U), U[0], Planned(w, weighing.lam, weighing.ess, spread)

    U, u, planned = jax.vmap(one)(U, V, cost(observations), valid, t)
    # What a guide would do next is not known before the control is executed: the learner samples then.
    V_next = None if planner.guided else propose(key, index + 1, U, planner)
    return U, u, V_next, planned


@partial(jax.jit, static_argnames=("optimiser", "config"))
def learn(
    cost: Cost,
    average: Network,
    optimiser_state: Any,
    observations: Array,
    planned: Planned,
    t: Array,
    experts: ExpertStates,
    key: Array,
    index: Array,
    optimiser: optax.GradientTransformation,
    config: Config,
) -> tuple[Network, Network, Any, Metrics]:
    """Make one update of θ on the mean of the B losses; θ stays as it is if the gradient is not finite.

    The loss is divided by the λ of the configuration. One that is chosen anew for every plan is the planner's own:
    where all rollouts cost the same it is next to nothing, and such a moment would outweigh all others.
    """
    B = len(t)
    keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, index), BLUR), (B, 2))
    lam = jnp.asarray(config.planner.lam)

    def one(network: Network, observations: Array, w: Array, t: Array, keys: Array) -> Array:
        windows = expert_windows(experts, t, config.planner.K)
        if config.blur:
            haze = config.blur * cost.normalise.deviation
            observations = blurred(keys[0], observations, haze)
            windows = windows._replace(observations=blurred(keys[1], windows.observations, haze))
        g = Cost(cost.normalise, network)
        if config.lessons is not None:
            observations, w = resample(observations, w, config.lessons, config.M_s)
        value = loss(g, windows, observations, w, lam, M_s=config.M_s, penalty=config.penalty)
        return jnp.where(w.sum() > 0, value, 0.0)

    def mean_loss(network: Network, episodes: tuple[Array, ...]) -> Array:
        return jax.vmap(partial(one, network))(*episodes).mean()

    episodes, together = (observations, planned.w, t, keys), differentiated_together(B, config)
    value, gradient = in_parts(partial(jax.value_and_grad(mean_loss), cost.network), episodes, B, together)
    updates, new_state = optimiser.update(gradient, optimiser_state, cost.network)
    network = optax.apply_updates(cost.network, updates)
    usable = jnp.isfinite(optax.tree.norm(gradient)) & (planned.w.sum() > 0)
    before = (cost.network, optimiser_state)
    network, new_state = jax.tree.map(partial(jnp.where, usable), (network, new_state), before)
    metrics = Metrics(value, planned.ess.mean(), jnp.median(planned.lam), planned.spread.mean())
    return network, optax.incremental_update(network, average, 1.0 - config.average), new_state, metrics


def differentiated_together(B: int, config: Config) -> int:
    """Return how many of the B losses to differentiate at once: on a processor, as many as fit its cache."""
    if jax.default_backend() != "cpu":
        return B
    states = (config.lessons or config.planner.M) * config.M_s * (config.planner.K + 1)
    fits = CACHED // (states * max(config.hidden, default=1))
    return max(part for part in range(1, B + 1) if B % part == 0 and part <= max(fits, 1))


def in_parts(mean: Callable[[Any], Any], batch: Any, B: int, size: int) -> Any:
    """Return the mean over a batch of B, from those of its parts one after the other."""
    if size == B:  # not as one part: convolutions inside a compiled loop are ten times as slow on a processor
        return mean(batch)
    parts = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), batch)
    return jax.tree.map(lambda x: x.mean(axis=0), jax.lax.map(mean, parts))


def blurred(key: Array, x: Array, deviation: Array) -> Array:
    """Add Gaussian noise to states x (..., n), so that g cannot learn to tell apart what lies closer than that."""
    return x + deviation * jax.random.normal(key, x.shape)


@cache
def make_optimiser(config: Config) -> optax.GradientTransformation:
    """Adam with L2 weight decay added to the gradient, on θ as one flat vector (five small leaves cost more).

    Cached because `learn` is compiled for the very object: learners of equal configuration share what is compiled.
    """
    lr = optax.cosine_decay_schedule(config.lr, config.iterations) if config.decay else config.lr
    return optax.flatten(optax.chain(optax.add_decayed_weights(config.weight_decay), optax.adam(lr)))
