"""GAIL from states alone (Ho and Ermon 2016; Torabi et al. 2018; f-MAX, Ghasemipour et al. 2019).

A discriminator tells the expert's states from those in the replay buffer, and the policy is paid for being mistaken
for the expert. With D = σ(l), three rewards are common:

    logit        l = log D − log(1 − D)     either sign; matches state marginals in reverse KL (f-MAX)
    positive     −log(1 − D) ≥ 0            pays for every step survived
    negative     log D ≤ 0                  charges for every step, and so rewards an early end

The last two have an opinion about how long to live that no demonstration gave them; `absorbing` takes most of it
away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rhirl.baselines.discriminator import adam, descend, logit, loss
from rhirl.baselines.imitation import Imitator
from rhirl.baselines.lesson import Lesson
from rhirl.baselines.practice import ImitationConfig, Metrics, stationary
from rhirl.costs import MLP, Cost, Normaliser
from rhirl.rl import Replay, Transitions
from rhirl.rl.replay import unpack


@dataclass(frozen=True)
class GAILConfig(ImitationConfig):
    """How GAIL learns."""

    reward: Literal["logit", "positive", "negative"] = "logit"
    """Reward form: l, −log(1 − D) or log D."""
    gradient_penalty: float = 4.0
    """Coefficient of (‖∂l/∂z‖ − 1)²."""
    recent: int = 200_000
    """The discriminator sees so many of the latest transitions."""


class Discriminator(NamedTuple):
    """What GAIL learns beside its policy."""

    cost: Cost
    moments: Any


class GAIL(Imitator[GAILConfig]):
    """State-only GAIL on SAC."""

    @staticmethod
    def begin(config: GAILConfig, key: Array, normalise: Normaliser) -> Discriminator:
        """Draw a discriminator."""
        network = MLP.of(key, len(normalise.mean), config.hidden)
        return Discriminator(Cost(normalise, network), adam(config.lr, config.weight_decay).init(network))

    @staticmethod
    def reward(config: GAILConfig, parameters: Discriminator, batch: Transitions) -> Array:
        """Pay for being mistaken for the expert."""
        return stationary(config, lambda x: form(config.reward, logit(parameters.cost, x)), batch)

    @staticmethod
    def teach(
        config: GAILConfig, parameters: Discriminator, lesson: Lesson, key: Array
    ) -> tuple[Discriminator, Metrics]:
        """Train the discriminator on states after a step, x₁ … x_T, of both sides."""
        states = lesson.experts.episodes[:, 1:]
        optimiser = adam(config.lr, config.weight_decay)
        normalise = parameters.cost.normalise

        def one(carry: tuple[MLP, Any], key: Array) -> tuple[tuple[MLP, Any], Metrics]:
            network, moments = carry
            k_expert, k_step, k_learner, k_mix = jax.random.split(key, 4)
            who = jax.random.randint(k_expert, (config.batch,), 0, len(states))
            # Without absorbing states, time stops where the demonstration does.
            until = states.shape[1] if config.absorbing else lesson.experts.lengths[who]
            when = jnp.floor(jax.random.uniform(k_step, (config.batch,)) * until).astype(int)
            drawn = recent(lesson.replay, k_learner, config.batch, config.recent)
            share = drawn.r if config.absorbing else None
            (value, accuracy), gradient = jax.value_and_grad(loss, has_aux=True)(
                network, normalise, states[who, when], drawn.x_next, share, config.gradient_penalty, k_mix
            )
            network, moments = descend(optimiser, gradient, moments, network)
            return (network, moments), {"loss": value, "accuracy": accuracy}

        carry = (parameters.cost.network, parameters.moments)
        (network, moments), metrics = jax.lax.scan(one, carry, jax.random.split(key, config.updates))
        return Discriminator(Cost(normalise, network), moments), jax.tree.map(jnp.mean, metrics)

    @staticmethod
    def learned(parameters: Discriminator) -> Cost:
        """Return g = −l."""
        return parameters.cost


def form(name: str, logits: Array) -> Array:
    """Turn logits into the reward of a form."""
    if name == "positive":
        return jax.nn.softplus(logits)
    if name == "negative":
        return -jax.nn.softplus(-logits)
    return logits


def recent(replay: Replay, key: Array, count: int, window: int) -> Transitions:
    """Draw transitions uniformly from the latest `window` of the replay buffer."""
    filled = jnp.minimum(replay.inserted, replay.capacity)
    age = jax.random.randint(key, (count,), 1, jnp.minimum(filled, window) + 1)
    return unpack(replay.rows[(replay.inserted - age) % replay.capacity], replay.n, replay.m)
