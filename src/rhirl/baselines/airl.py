"""AIRL with a reward of states (Fu et al. 2018): a discriminator built so that a reward can be taken out of it.

    D(x, u, x') = σ(f(x, x') − log π(u|x)),      f(x, x') = r(x) + γ V(x') − V(x)

At the optimum f = log π_E, the expert's advantage, and r is its reward up to a constant: V takes up what depends on
the dynamics. The policy is paid f, which has the optimal policy of r (the rest is potential-based shaping) and much
the smaller values; the learned cost is −r. Where an episode terminates, V(x') is all that x' would be paid from
then on, r(x')/(1 − γ), or zero without `absorbing`.

AIRL compares densities of controls, so demonstrations need them. Densities are those of commanded controls, while
demonstrated ones are as executed; both are kept `edge` away from ±1, where a squashed Gaussian has none. The
density of a control that the policy has turned away from has no lower bound, be it in a demonstration or in an old
transition of its own. `uniform` = ε gives it one: the discriminator is told π̃ = (1 − ε) π + ε 2⁻ᵐ, the density of a
policy that acts at random once in 1/ε steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rhirl.baselines.discriminator import adam, cross_entropy, descend, gradient_penalty
from rhirl.baselines.gail import recent
from rhirl.baselines.imitation import Imitator
from rhirl.baselines.lesson import Lesson
from rhirl.baselines.practice import ImitationConfig, Metrics, stationary
from rhirl.costs import MLP, Cost, Normaliser
from rhirl.rl import Actor, Transitions, log_density


@dataclass(frozen=True)
class AIRLConfig(ImitationConfig):
    """How AIRL learns."""

    gradient_penalty: float = 1.0
    """Coefficient of (‖∂r/∂z‖ − 1)²; without it, r grows without bound where expert and policy never meet."""
    recent: int = 10_000
    """The discriminator sees so many of the latest transitions."""
    edge: float = 0.01
    """Controls are kept so far from ±1 when their density is taken."""
    uniform: float = 0.0
    """Share of uniformly random controls in the density π̃ that the discriminator is told."""
    shaped: bool = True
    """Whether the policy is paid f; otherwise r alone."""


class Networks(NamedTuple):
    """r = −g(x) and the potential V(x)."""

    cost: MLP
    value: MLP


class Parameters(NamedTuple):
    """What AIRL learns beside its policy."""

    normalise: Normaliser
    networks: Networks
    moments: Any


class AIRL(Imitator[AIRLConfig]):
    """State-only AIRL on SAC."""

    needs_controls = True

    @staticmethod
    def begin(config: AIRLConfig, key: Array, normalise: Normaliser) -> Parameters:
        """Draw r and V."""
        keys = jax.random.split(key)
        networks = Networks(*(MLP.of(k, len(normalise.mean), config.hidden) for k in keys))
        return Parameters(normalise, networks, adam(config.lr, config.weight_decay).init(networks))

    @staticmethod
    def reward(config: AIRLConfig, parameters: Parameters, batch: Transitions) -> Array:
        """Pay f, or r alone."""
        if not config.shaped:
            cost = Cost(parameters.normalise, parameters.networks.cost)
            return stationary(config, lambda x: -cost(x), batch)
        return advantage(config, parameters.networks, parameters.normalise, batch)

    @staticmethod
    def teach(config: AIRLConfig, parameters: Parameters, lesson: Lesson, key: Array) -> tuple[Parameters, Metrics]:
        """Train the discriminator on transitions of both sides."""
        optimiser, normalise = adam(config.lr, config.weight_decay), parameters.normalise
        demonstrated = lesson.experts.transitions

        def loss(networks: Networks, expert: Transitions, learner: Transitions, key: Array) -> tuple[Array, Array]:
            l_expert = logits(config, networks, normalise, lesson.actor, expert)
            l_learner = logits(config, networks, normalise, lesson.actor, learner)
            value = cross_entropy(l_expert, l_learner)
            if config.gradient_penalty:
                z = (normalise(expert.x), normalise(learner.x))
                value = value + config.gradient_penalty * gradient_penalty(networks.cost, *z, key)
            return value, 0.5 * ((l_expert > 0).mean() + (l_learner < 0).mean())

        def one(carry: tuple[Networks, Any], key: Array) -> tuple[tuple[Networks, Any], Metrics]:
            networks, moments = carry
            k_expert, k_learner, k_mix = jax.random.split(key, 3)
            index = jax.random.randint(k_expert, (config.batch,), 0, lesson.experts.steps)
            expert = Transitions(*(column[index] for column in demonstrated))
            learner = recent(lesson.replay, k_learner, config.batch, config.recent)
            (value, accuracy), gradient = jax.value_and_grad(loss, has_aux=True)(networks, expert, learner, k_mix)
            networks, moments = descend(optimiser, gradient, moments, networks)
            return (networks, moments), {"loss": value, "accuracy": accuracy}

        carry = (parameters.networks, parameters.moments)
        (networks, moments), metrics = jax.lax.scan(one, carry, jax.random.split(key, config.updates))
        return Parameters(normalise, networks, moments), jax.tree.map(jnp.mean, metrics)

    @staticmethod
    def learned(parameters: Parameters) -> Cost:
        """Return g = −r, without the shaping."""
        return Cost(parameters.normalise, parameters.networks.cost)


def advantage(config: AIRLConfig, networks: Networks, normalise: Normaliser, batch: Transitions) -> Array:
    """f(x, x') = r(x) + γ V(x') − V(x)."""
    gamma = config.sac.gamma
    z, z_next = normalise(batch.x), normalise(batch.x_next)
    end = -networks.cost(z_next) / (1.0 - gamma) if config.absorbing else 0.0
    after = jnp.where(batch.d > 0, end, networks.value(z_next))
    return -networks.cost(z) + gamma * after - networks.value(z)


def logits(
    config: AIRLConfig, networks: Networks, normalise: Normaliser, actor: Actor, batch: Transitions
) -> Array:
    """log D − log(1 − D) = f(x, x') − log π̃(u|x), finite whatever the control."""
    inside = jnp.clip(batch.u, config.edge - 1.0, 1.0 - config.edge)
    log_pi = log_density(actor, batch.x, inside)
    if config.uniform:
        anything = -batch.u.shape[-1] * math.log(2.0)
        log_pi = jnp.logaddexp(math.log1p(-config.uniform) + log_pi, math.log(config.uniform) + anything)
    return advantage(config, networks, normalise, batch) - log_pi
