"""A method's own part and SAC's: pure functions for a cost, and SAC's updates on batches that the cost pays.

An episode that terminates stays where it is: with `absorbing`, the state it ended in is paid for ever after,
r(x') γ/(1 − γ) in all. Without it, ending an episode is worth zero, which a reward of one sign reads as "live" or
as "die" for no reason the demonstrations give.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from rhirl.baselines.lesson import Lesson
from rhirl.costs import Cost, Normaliser
from rhirl.rl import Actor, Learner, Replay, SACConfig, Transitions
from rhirl.rl.replay import draw, unpack
from rhirl.rl.sac import update

Metrics = dict[str, Array]


@dataclass(frozen=True)
class ImitationConfig:
    """How a method learns its cost, and the SAC inside."""

    sac: SACConfig = field(default_factory=SACConfig)
    """The policy's learner; its seed is the run's."""
    steps: int = 300_000
    """Environment steps to learn for, every one counted."""
    hidden: tuple[int, ...] = (64, 64)
    """Hidden layers of the cost network."""
    lr: float = 3e-4
    """Learning rate of the cost."""
    weight_decay: float = 1e-4
    """L2 penalty on the cost's parameters, added to the gradient before Adam."""
    batch: int = 256
    """States of each side per update of a discriminator."""
    updates: int = 64
    """Updates of a discriminator per lesson."""
    every: int = 1
    """Iterations between two lessons of the cost."""
    absorbing: bool = True
    """Whether the state in which an episode terminates counts for all the time that was left."""
    average: float = 0.98
    """Decay per iteration of the running average of the actor, which is the learned policy; 0 keeps the last."""
    floor: float = 1e-2
    """Smallest deviation used to normalise a coordinate of the observation."""
    limit: float = 5.0
    """Normalised observations are clipped to ± this."""

    @property
    def iteration_steps(self) -> int:
        """Environment steps of one iteration."""
        return self.sac.envs * self.sac.round_steps

    @property
    def iterations(self) -> int:
        """Iterations that make up the steps."""
        return -(-self.steps // self.iteration_steps)


class Teacher(ABC):
    """What a method is made of."""

    @staticmethod
    @abstractmethod
    def begin(config: Any, key: Array, normalise: Normaliser) -> Any:
        """Draw the method's networks, with the moments of their optimisers."""

    @staticmethod
    @abstractmethod
    def reward(config: Any, parameters: Any, batch: Transitions) -> Array:
        """Pay a batch: (B,)."""

    @staticmethod
    @abstractmethod
    def teach(config: Any, parameters: Any, lesson: Lesson, key: Array) -> tuple[Any, Metrics]:
        """Let the cost learn for one iteration."""

    @staticmethod
    @abstractmethod
    def learned(parameters: Any) -> Cost:
        """Return the cost g."""


@partial(jax.jit, static_argnames=("method", "config"), donate_argnames=("learner", "average"))
def practise(
    method: type[Teacher], config: Any, learner: Learner, average: Actor, replay: Replay, parameters: Any
) -> tuple[Learner, Actor, Metrics]:
    """Make an iteration's updates of SAC on batches paid by the method's cost; metrics are their means."""
    count = config.sac.updates_per_round
    key, k_index, k_noise = jax.random.split(learner.key, 3)
    index = draw(replay, k_index, (count, config.sac.batch))
    noise = jax.random.normal(k_noise, (count, 2, config.sac.batch, replay.m))

    def one(learner: Learner, drawn: tuple[Array, Array]) -> tuple[Learner, Metrics]:
        batch = unpack(replay.rows[drawn[0]], replay.n, replay.m)
        paid = method.reward(config, parameters, batch)
        learner, metrics = update(config.sac, learner, batch._replace(r=paid), drawn[1])
        return learner, {**metrics, "reward": paid.mean()}

    learner, metrics = jax.lax.scan(one, eqx.tree_at(lambda s: s.key, learner, key), (index, noise))
    average = optax.incremental_update(learner.actor, average, 1.0 - config.average)
    return learner, average, jax.tree.map(jnp.mean, metrics)


@partial(jax.jit, static_argnames=("method", "config"))
def teach(method: type[Teacher], config: Any, parameters: Any, lesson: Lesson, key: Array) -> tuple[Any, Metrics]:
    """Let the cost learn for one iteration, compiled."""
    return method.teach(config, parameters, lesson, key)


def stationary(config: ImitationConfig, pay: Callable[[Array], Array], batch: Transitions) -> Array:
    """Pay r(x), and for a state in which the episode terminated all that it would be paid from then on."""
    paid = pay(batch.x)
    if config.absorbing:
        gamma = config.sac.gamma
        paid = paid + batch.d * pay(batch.x_next) * gamma / (1.0 - gamma)
    return paid
