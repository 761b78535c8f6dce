"""f-IRL (Ni et al. 2020): a stationary reward whose policy has the expert's state marginal.

With ρ the marginal over states of an episode, l(x) = log ρ_E(x) − log ρ_θ(x) a discriminator's logit, and
trajectories τ of the policy that is optimal for r_θ at temperature α,

    ∂/∂θ D_f(ρ_E ‖ ρ_θ) = 1/(αT) · cov_τ( Σ_t h(l(x_t)), Σ_t ∂r_θ(x_t)/∂θ ),      h(l) = f(eˡ) − f'(eˡ) eˡ

    JS             h = −log(1 + eˡ)      (without its constant, which no covariance sees)
    reverse KL     h = −l
    forward KL     h = −eˡ

The covariance is taken over the policy's latest episodes and, as in the authors' code, as many demonstrations:
those show the reward states the policy does not know yet. Every episode counts T states; after an early end its
last state is repeated. The episodes are those SAC has learned from anyway: no environment step is made for the
marginal alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rhirl.baselines.discriminator import adam, descend, logit
from rhirl.baselines.discriminator import loss as discriminator_loss
from rhirl.baselines.imitation import Imitator
from rhirl.baselines.lesson import Lesson
from rhirl.baselines.practice import ImitationConfig, Metrics, stationary
from rhirl.costs import MLP, Cost, Normaliser
from rhirl.rl import Transitions


@dataclass(frozen=True)
class FIRLConfig(ImitationConfig):
    """How f-IRL learns."""

    divergence: Literal["js", "rkl", "fkl"] = "js"
    """Jensen–Shannon, reverse KL or forward KL; the last one weighs by e^l and can explode."""
    reward_lr: float = 1e-4
    """Learning rate of the reward; `lr` is the discriminator's."""
    reward_decay: float = 1e-3
    """L2 penalty on the reward's parameters."""
    gradient_penalty: float = 0.5
    """Coefficient of (‖∂l/∂z‖ − 1)² on the discriminator."""
    mixed: bool = True
    """Whether demonstrations join the covariance."""


class Parameters(NamedTuple):
    """What f-IRL learns beside its policy."""

    cost: Cost
    """−r"""
    moments: Any
    discriminator: MLP
    discriminator_moments: Any


class FIRL(Imitator[FIRLConfig]):
    """f-IRL on SAC."""

    kept = 16

    @staticmethod
    def begin(config: FIRLConfig, key: Array, normalise: Normaliser) -> Parameters:
        """Draw reward and discriminator."""
        network, discriminator = (MLP.of(k, len(normalise.mean), config.hidden) for k in jax.random.split(key))
        return Parameters(
            Cost(normalise, network),
            adam(config.reward_lr, config.reward_decay).init(network),
            discriminator,
            adam(config.lr, config.weight_decay).init(discriminator),
        )

    @staticmethod
    def reward(config: FIRLConfig, parameters: Parameters, batch: Transitions) -> Array:
        """Pay r = −g."""
        return stationary(config, lambda x: -parameters.cost(x), batch)

    @staticmethod
    def teach(config: FIRLConfig, parameters: Parameters, lesson: Lesson, key: Array) -> tuple[Parameters, Metrics]:
        """Train the discriminator on whole episodes, then make one step of the reward."""
        k_discriminator, k_experts = jax.random.split(key)
        normalise = parameters.cost.normalise
        # Two of the policy's episodes make the first covariance; until then there is nothing to learn from.
        enough = lesson.available >= 2
        discriminator, moments, metrics = tell_apart(config, parameters, lesson, k_discriminator)

        kept = len(lesson.finished)
        weights = (jnp.arange(kept) < lesson.available).astype(jnp.float32)
        trajectories = lesson.finished
        if config.mixed:
            chosen = jax.random.randint(k_experts, (kept,), 0, len(lesson.experts.episodes))
            trajectories = jnp.concatenate([trajectories, lesson.experts.episodes[chosen]])
            weights = jnp.concatenate([weights, weights])
        h = surprise(config.divergence, logit(Cost(normalise, discriminator), trajectories[:, 1:]))

        def loss(network: MLP) -> Array:
            return covariance(h, -Cost(normalise, network)(trajectories[:, 1:]), weights)

        value, gradient = jax.value_and_grad(loss)(parameters.cost.network)
        optimiser = adam(config.reward_lr, config.reward_decay)
        network, reward_moments = descend(optimiser, gradient, parameters.moments, parameters.cost.network)
        learned = Parameters(Cost(normalise, network), reward_moments, discriminator, moments)
        return jax.tree.map(lambda new, old: jnp.where(enough, new, old), learned, parameters), {
            "loss": value,
            **metrics,
        }

    @staticmethod
    def learned(parameters: Parameters) -> Cost:
        """Return g = −r."""
        return parameters.cost


def surprise(divergence: str, logits: Array) -> Array:
    """h of a divergence, from logits l = log ρ_E − log ρ_θ, without constants."""
    if divergence == "rkl":
        return -logits
    if divergence == "fkl":
        return -jnp.exp(logits)
    return -jax.nn.softplus(logits)


def covariance(h: Array, r: Array, weights: Array) -> Array:
    """1/T · cov_τ(Σ_t h, Σ_t r) for h, r (N, T) over trajectories with these weights (N,), whatever they sum to.

    Its gradient in the parameters of r, h held fixed, is f-IRL's, but for the factor 1/α, which Adam cannot see.
    """
    p = weights / jnp.maximum(weights.sum(), 1.0)
    H, R = h.sum(-1), r.sum(-1)
    return (jnp.vdot(p, H * R) - jnp.vdot(p, H) * jnp.vdot(p, R)) / h.shape[-1]


def tell_apart(config: FIRLConfig, parameters: Parameters, lesson: Lesson, key: Array) -> tuple[MLP, Any, Metrics]:
    """Train the discriminator on the states of demonstrations and of the policy's latest episodes."""
    normalise, optimiser = parameters.cost.normalise, adam(config.lr, config.weight_decay)
    experts, T = lesson.experts.episodes, lesson.finished.shape[1] - 1

    def states(episodes: Array, count: Array | int, key: Array) -> Array:
        k_who, k_when = jax.random.split(key)
        who = jax.random.randint(k_who, (config.batch,), 0, count)
        return episodes[who, jax.random.randint(k_when, (config.batch,), 1, T + 1)]

    def one(carry: tuple[MLP, Any], key: Array) -> tuple[tuple[MLP, Any], Metrics]:
        network, moments = carry
        k_expert, k_learner, k_mix = jax.random.split(key, 3)
        expert = states(experts, len(experts), k_expert)
        learner = states(lesson.finished, jnp.maximum(lesson.available, 1), k_learner)
        (value, accuracy), gradient = jax.value_and_grad(discriminator_loss, has_aux=True)(
            network, normalise, expert, learner, None, config.gradient_penalty, k_mix
        )
        network, moments = descend(optimiser, gradient, moments, network)
        return (network, moments), {"discriminator_loss": value, "accuracy": accuracy}

    carry = (parameters.discriminator, parameters.discriminator_moments)
    (network, moments), metrics = jax.lax.scan(one, carry, jax.random.split(key, config.updates))
    return network, moments, jax.tree.map(jnp.mean, metrics)
