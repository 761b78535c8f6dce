"""Soft actor-critic as pure functions (Haarnoja et al. 2018, with learned temperature and clipped double critics).

The policy maximises Σ γ^t (r + α H(π(.|x))). With transitions (x, u, r, d, x') from the replay buffer:

    y        = s r + γ (1 - d) (min_e Q̄_e(x', u') - α log π(u'|x')),      u' ~ π(.|x')
    L_critic = Σ_e ½ mean (Q_e(x, u) - y)²
    L_actor  = mean (α log π(ũ|x) - min_e Q_e(x, ũ)),                     ũ ~ π(.|x), reparameterised
    L_α      = -log α · mean (log π(ũ|x) + H̄)
    Q̄       ← Q̄ + τ (Q - Q̄)

`s` is the reward scale, `H̄` the entropy the temperature aims for. The reward r is the environment's, or is
computed anew for every batch by a function of states, which is how a learned reward that keeps changing trains a
policy without ever being stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from rhirl.rl.networks import Actor, Critic, sample
from rhirl.rl.replay import Replay, Transitions, draw, unpack

Reward = Callable[[Any, Array, Array], Array]
"""reward(parameters, x, x_next) -> (B,): a reward of states, its parameters any pytree of arrays."""
Metrics = dict[str, Array]


@dataclass(frozen=True)
class SACConfig:
    """How SAC learns and how it meets its environments."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the actor's hidden layers."""
    critic_hidden: tuple[int, ...] | None = None
    """Widths of the critics' hidden layers; those of the actor when not given."""
    critics: int = 2
    """Number of critics; the smallest value counts."""
    layer_norm: bool = False
    """Normalise the critics' hidden layers; keeps values in bounds when there are many updates per step."""
    learning_rate: float = 3e-4
    """Adam's step size for actor, critics and temperature."""
    batch: int = 256
    """Transitions per update."""
    gamma: float = 0.99
    """Discount γ."""
    tau: float = 0.005
    """Step τ of the target critics towards the critics, per update."""
    temperature: float | None = None
    """Weight α of the entropy; learned when not given."""
    target_entropy: float | None = None
    """Entropy H̄ that a learned temperature aims for; minus the number of controls when not given."""
    reward_scale: float = 1.0
    """Factor s on every reward."""
    capacity: int = 1_000_000
    """Transitions the replay buffer holds."""
    envs: int = 1
    """Environments stepped together."""
    round_steps: int = 1
    """Steps of every environment between two rounds of updates."""
    update_ratio: float = 1.0
    """Updates per environment step."""
    random_steps: int = 100
    """Steps with uniformly random controls before learning starts."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with the reason."""
        if self.envs * self.round_steps > self.capacity:
            raise ValueError(
                f"one round collects {self.envs * self.round_steps} transitions, more than the replay buffer holds "
                f"({self.capacity}); lower envs or round_steps, or raise capacity"
            )
        if self.updates_per_round < 1:
            raise ValueError(
                f"update_ratio {self.update_ratio} leaves no update for a round of {self.envs * self.round_steps} "
                "steps; raise update_ratio, envs or round_steps"
            )
        if self.temperature is not None and self.temperature <= 0:
            raise ValueError(f"temperature must be positive, got {self.temperature}")

    @property
    def updates_per_round(self) -> int:
        """Updates fused into one call."""
        return round(self.update_ratio * self.envs * self.round_steps)


class Learner(eqx.Module):
    """Everything SAC knows, as one pytree of arrays."""

    actor: Actor
    critic: Critic
    target: Critic
    log_alpha: Array
    actor_moments: optax.OptState
    critic_moments: optax.OptState
    alpha_moments: optax.OptState
    key: Array
    updates: Array


def init(config: SACConfig, n: int, m: int) -> Learner:
    """Draw a fresh learner for n observations and m controls."""
    key, k_actor, k_critic = jax.random.split(jax.random.PRNGKey(config.seed), 3)
    actor = Actor.create(k_actor, n, m, config.hidden)
    widths = config.critic_hidden or config.hidden
    critic = Critic.create(k_critic, n, m, widths, count=config.critics, layer_norm=config.layer_norm)
    # Critic and target must not share buffers: both are donated to the same update.
    target = jax.tree.map(jnp.copy, critic)
    log_alpha = jnp.asarray(math.log(config.temperature or 1.0), jnp.float32)
    adam = optax.adam(config.learning_rate)
    return Learner(
        actor,
        critic,
        target,
        log_alpha,
        adam.init(actor),
        adam.init(critic),
        adam.init(log_alpha),
        key,
        jnp.zeros((), jnp.int32),
    )


def critic_loss(critic: Critic, batch: Transitions, y: Array) -> Array:
    """L_critic for targets y (B,)."""
    return 0.5 * ((critic(batch.x, batch.u) - y) ** 2).mean(-1).sum()


def actor_loss(actor: Actor, critic: Critic, alpha: Array, x: Array, noise: Array) -> tuple[Array, Array]:
    """L_actor, and the mean log-density the temperature learns from."""
    u, log_pi = sample(actor, x, noise)
    return (alpha * log_pi - critic(x, u).min(0)).mean(), log_pi.mean()


def targets(config: SACConfig, learner: Learner, batch: Transitions, noise: Array) -> Array:
    """Regression targets y (B,); a transition that only ran out of time still has a future."""
    u, log_pi = sample(learner.actor, batch.x_next, noise)
    value = learner.target(batch.x_next, u).min(0) - jnp.exp(learner.log_alpha) * log_pi
    return config.reward_scale * batch.r + config.gamma * (1.0 - batch.d) * value


def update(config: SACConfig, learner: Learner, batch: Transitions, noise: Array) -> tuple[Learner, Metrics]:
    """One update of critics, actor, temperature and targets; noise: (2, B, m) standard normal."""
    adam = optax.adam(config.learning_rate)
    alpha = jnp.exp(learner.log_alpha)

    y = targets(config, learner, batch, noise[0])
    loss_q, grad = jax.value_and_grad(critic_loss)(learner.critic, batch, y)
    step, critic_moments = adam.update(grad, learner.critic_moments)
    critic = optax.apply_updates(learner.critic, step)

    (loss_pi, log_pi), grad = jax.value_and_grad(actor_loss, has_aux=True)(
        learner.actor, critic, alpha, batch.x, noise[1]
    )
    step, actor_moments = adam.update(grad, learner.actor_moments)
    actor = optax.apply_updates(learner.actor, step)

    log_alpha, alpha_moments = learner.log_alpha, learner.alpha_moments
    if config.temperature is None:
        target_entropy = -float(batch.u.shape[-1]) if config.target_entropy is None else config.target_entropy
        step, alpha_moments = adam.update(-(log_pi + target_entropy), alpha_moments)
        log_alpha = optax.apply_updates(log_alpha, step)

    target = jax.tree.map(lambda q_bar, q: q_bar + config.tau * (q - q_bar), learner.target, critic)
    metrics = {
        "critic_loss": loss_q,
        "actor_loss": loss_pi,
        "entropy": -log_pi,
        "temperature": alpha,
        "value": y.mean(),
    }
    moments = (actor_moments, critic_moments, alpha_moments)
    return Learner(actor, critic, target, log_alpha, *moments, learner.key, learner.updates + 1), metrics


@partial(jax.jit, static_argnames=("config", "count", "reward"), donate_argnames=("learner",))
def updates(
    config: SACConfig,
    learner: Learner,
    replay: Replay,
    count: int,
    reward: Reward | None = None,
    reward_parameters: Any = None,
) -> tuple[Learner, Metrics]:
    """`count` updates on batches drawn from the replay buffer, in one call; metrics are their means.

    All random numbers of the call are drawn at once: a few large draws cost far less than many small ones. The
    learner passed in is consumed.
    """
    key, k_index, k_noise = jax.random.split(learner.key, 3)
    index = draw(replay, k_index, (count, config.batch))
    noise = jax.random.normal(k_noise, (count, 2, config.batch, replay.m))

    def one(state: Learner, drawn: tuple[Array, Array]) -> tuple[Learner, Metrics]:
        batch = unpack(replay.rows[drawn[0]], replay.n, replay.m)
        if reward is not None:
            batch = batch._replace(r=reward(reward_parameters, batch.x, batch.x_next))
        return update(config, state, batch, drawn[1])

    learner, metrics = jax.lax.scan(one, eqx.tree_at(lambda s: s.key, learner, key), (index, noise))
    return learner, jax.tree.map(jnp.mean, metrics)
