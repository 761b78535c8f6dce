"""Tell the expert's states from the learner's: a classifier whose logit is a log density ratio.

    D(x) = σ(l(x)),   l(x) = −g(x),   trained on   −E_expert log D − E_learner log(1 − D)

At its optimum l = log p_E(x) − log p_π(x). The network is that of every cost here, so a discriminator can be saved,
drawn and planned with like any other cost: g is high where the learner goes and the expert does not.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from rhirl.costs import MLP, Cost, Normaliser


@cache
def adam(lr: float, weight_decay: float) -> optax.GradientTransformation:
    """Adam with L2 weight decay added to the gradient (not decoupled), on all parameters as one flat vector."""
    return optax.flatten(optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(lr)))


def descend(
    optimiser: optax.GradientTransformation, gradient: Any, moments: Any, parameters: Any
) -> tuple[Any, Any]:
    """Make one step of an optimiser; return the new parameters and moments."""
    step, moments = optimiser.update(gradient, moments, parameters)
    return optax.apply_updates(parameters, step), moments


def cross_entropy(expert: Array, learner: Array, share: Array | None = None) -> Array:
    """Loss of logits on expert (B,) and learner states (B,), the latter weighted by `share` where it is given."""
    on_learner = jax.nn.softplus(learner)
    if share is not None:
        on_learner = on_learner * share / share.mean()
    return jax.nn.softplus(-expert).mean() + on_learner.mean()


def gradient_penalty(network: MLP, expert: Array, learner: Array, key: Array) -> Array:
    """E (‖∂l/∂z‖ − 1)² on the way from expert to learner states, z (B, n) being normalised observations.

    It bounds how steep the logit gets, so that it stays a signal where the two do not overlap.
    """
    mix = jax.random.uniform(key, (len(expert), 1))
    slopes = jax.vmap(jax.grad(network))(mix * expert + (1.0 - mix) * learner)
    # The square root has no slope at zero, and a network may well be flat somewhere.
    norms = jnp.sqrt((slopes**2).sum(-1) + 1e-12)
    return ((norms - 1.0) ** 2).mean()


def loss(
    network: MLP,
    normalise: Normaliser,
    expert: Array,
    learner: Array,
    share: Array | None,
    penalty: float,
    key: Array,
) -> tuple[Array, Array]:
    """Loss of the discriminator on states (B, n) of both sides, and the share of states it gets right."""
    expert, learner = normalise(expert), normalise(learner)
    l_expert, l_learner = -network(expert), -network(learner)
    value = cross_entropy(l_expert, l_learner, share)
    if penalty:
        value = value + penalty * gradient_penalty(network, expert, learner, key)
    return value, 0.5 * ((l_expert > 0).mean() + (l_learner < 0).mean())


def logit(cost: Cost, x: Array, limit: float = 10.0) -> Array:
    """l(x) = −g(x), bounded as in f-IRL: beyond e¹⁰ nothing is learned from more confidence."""
    return jnp.clip(-cost(x), -limit, limit)
