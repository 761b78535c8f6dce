"""Behaviour cloning: imitate the demonstrated controls, state by state, without ever acting.

    maximise  E log N(v; tanh μ(x), σ²)   over demonstrated pairs (x, v)

The Gaussian stands on the control itself: executed controls are clipped to the box, and a density that is squashed
into the box would find those on its edge infinitely far out. σ is one number per control: a few demonstrations
teach a σ(x) nothing but to be sure of what was seen. Some demonstrations are held out; the network that predicts
them best is kept, and learning ends when it has not been beaten for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from rhirl.baselines.discriminator import adam, descend
from rhirl.demos import DemonstrationError, Demonstrations
from rhirl.rl import Actor, Policy, act, to_numpy

LOG_STD_RANGE = (-5.0, 1.0)
Metrics = dict[str, Array]


@dataclass(frozen=True)
class BCConfig:
    """How behaviour cloning learns."""

    hidden: tuple[int, ...] = (64, 64)
    """Hidden layers of the policy."""
    lr: float = 1e-3
    """Learning rate of Adam."""
    weight_decay: float = 1e-4
    """L2 penalty, added to the gradient before Adam."""
    batch: int = 64
    """Pairs per update."""
    epochs: int = 2_000
    """Passes over the demonstrations, at most."""
    held_out: float = 0.2
    """Share of the demonstrations that are held out; at least one."""
    patience: int = 200
    """Epochs without a better held-out likelihood after which learning ends."""
    floor: float = 1e-2
    """Smallest deviation used to normalise a coordinate of the observation."""

    @property
    def iterations(self) -> int:
        """Epochs, at most."""
        return self.epochs


class Pairs(NamedTuple):
    """Demonstrated observations, normalised, with the controls executed there."""

    z: Array
    """(S, n)"""
    v: Array
    """(S, m)"""

    def with_more(self, others: Pairs) -> Pairs:
        """Return these and others."""
        return Pairs(jnp.concatenate([self.z, others.z]), jnp.concatenate([self.v, others.v]))


class Clone(NamedTuple):
    """The policy: μ is the first half of what the actor gives, σ stands beside it."""

    actor: Actor
    log_std: Array
    """(m,)"""


class State(NamedTuple):
    """Everything behaviour cloning knows between two epochs."""

    clone: Clone
    moments: Any
    best: Clone
    best_loss: Array
    stale: Array
    """() epochs since the best one."""
    key: Array
    iteration: Array


class BC:
    """Behaviour cloning.

    Args:
        demos: Demonstrations with controls.
        config: Hyper-parameters.
        seed: Of everything random.
        trusted: (N, T) which of the controls to learn from; by default all.
        watched: Further pairs (S, n), (S, m) to learn from, of which one in five is held out.
    """

    def __init__(
        self,
        demos: Demonstrations,
        config: BCConfig | None = None,
        *,
        seed: int = 0,
        trusted: NDArray[np.bool_] | None = None,
        watched: tuple[NDArray[Any], NDArray[Any]] | None = None,
    ) -> None:
        if demos.controls is None:
            raise DemonstrationError(
                f"these demonstrations of {demos.meta.task} hold no controls, and behaviour cloning learns from "
                "nothing else: use rhirl, firl or gail, which need states only"
            )
        self.config, self.seed = config or BCConfig(), seed
        held_out = max(1, round(self.config.held_out * len(demos)))
        if held_out >= len(demos):
            raise DemonstrationError(f"{len(demos)} demonstrations are too few to hold one out; give at least two")
        states = demos.states().astype(np.float64)
        self._mean, self._deviation = states.mean(0), np.maximum(states.std(0), self.config.floor)
        there = np.arange(demos.horizon) < demos.lengths[:, None]
        trusted = there if trusted is None else there & trusted
        self._learn = self._pairs(demos, trusted, slice(held_out, None))
        self._judge = self._pairs(demos, trusted, slice(held_out))
        if watched is not None:
            apart = np.arange(len(watched[0])) % 5 == 0
            self._learn = self._learn.with_more(self._normalised(watched[0][~apart], watched[1][~apart]))
            self._judge = self._judge.with_more(self._normalised(watched[0][apart], watched[1][apart]))
        key, k_actor = jax.random.split(jax.random.key(seed))
        n, m = self._learn.z.shape[1], self._learn.v.shape[1]
        clone = Clone(Actor.create(k_actor, n, m, self.config.hidden), jnp.zeros(m))
        moments = adam(self.config.lr, self.config.weight_decay).init(clone)
        far = jnp.asarray(jnp.inf)
        self.state = State(clone, moments, clone, far, jnp.asarray(0), key, jnp.asarray(0))

    @property
    def iteration(self) -> int:
        """Epochs so far."""
        return int(self.state.iteration)

    @property
    def finished(self) -> bool:
        """Whether all epochs are over, or patience is."""
        return self.iteration >= self.config.epochs or int(self.state.stale) >= self.config.patience

    def learn(self, callback: Callable[[Self, Metrics], None] | None = None) -> Self:
        """Learn until finished."""
        while not self.finished:
            metrics = self.step()
            if callback is not None:
                callback(self, metrics)
        return self

    def step(self) -> Metrics:
        """Make one epoch."""
        self.state, metrics = epoch(self.config, self.state, self._learn, self._judge)
        return metrics

    def restore(self, state: State) -> None:
        """Go on from a state as it was after some `step`."""
        self.state = state

    @property
    def deviation(self) -> NDArray[np.float32]:
        """(m,) σ of the best policy: how far the controls lie from it, where it was not taught."""
        return np.exp(np.asarray(self.state.best.log_std.clip(*LOG_STD_RANGE)))

    def policy(self, **metadata: str) -> Policy:
        """Take the best policy out, to act on plain observations: the normaliser goes into its first layer."""
        body, log_std = to_numpy(self.state.best.actor.body), np.asarray(self.state.best.log_std)
        scaled = body.weights[0] / self._deviation[:, None]
        first = (scaled.astype(np.float32), np.asarray(body.biases[0] - self._mean @ scaled, np.float32))
        body = eqx.tree_at(lambda b: (b.weights[0], b.biases[0]), body, first)
        body.weights[-1][:, len(log_std) :] = 0.0
        body.biases[-1][len(log_std) :] = log_std
        return Policy(Actor(body), metadata)

    def act(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Return the control u (m,) for observation x (n,)."""
        return act(self.policy().actor, np.asarray(x, np.float32)[None])[0]

    def close(self) -> None:
        """Nothing to release."""

    def _pairs(self, demos: Demonstrations, trusted: NDArray[np.bool_], episodes: slice) -> Pairs:
        assert demos.controls is not None
        x, v = demos.observations[episodes, :-1][trusted[episodes]], demos.controls[episodes][trusted[episodes]]
        return self._normalised(x, v)

    def _normalised(self, x: NDArray[Any], v: NDArray[Any]) -> Pairs:
        z = (x - self._mean) / self._deviation
        return Pairs(jnp.asarray(z, jnp.float32), jnp.asarray(v, jnp.float32))


def negative_log_likelihood(clone: Clone, pairs: Pairs) -> Array:
    """−E log N(v; tanh μ(x), σ²), summed over the m controls, without its constant."""
    mean, _ = clone.actor(pairs.z)
    log_std = clone.log_std.clip(*LOG_STD_RANGE)
    return (0.5 * ((pairs.v - jnp.tanh(mean)) * jnp.exp(-log_std)) ** 2 + log_std).sum(-1).mean()


@partial(jax.jit, static_argnames="config")
def epoch(config: BCConfig, state: State, learn: Pairs, judge: Pairs) -> tuple[State, Metrics]:
    """Go once through the pairs in random order, then look at those held out."""
    key, k_order = jax.random.split(state.key)
    batches = max(1, len(learn.z) // config.batch)
    order = jax.random.permutation(k_order, len(learn.z))[: batches * config.batch].reshape(batches, -1)
    optimiser = adam(config.lr, config.weight_decay)

    def one(carry: tuple[Clone, Any], index: Array) -> tuple[tuple[Clone, Any], Array]:
        clone, moments = carry
        batch = Pairs(learn.z[index], learn.v[index])
        value, gradient = jax.value_and_grad(negative_log_likelihood)(clone, batch)
        return descend(optimiser, gradient, moments, clone), value

    (clone, moments), losses = jax.lax.scan(one, (state.clone, state.moments), order)
    judged = negative_log_likelihood(clone, judge)
    better = judged < state.best_loss
    best = jax.tree.map(partial(jnp.where, better), clone, state.best)
    stale = jnp.where(better, 0, state.stale + 1)
    best_loss = jnp.where(better, judged, state.best_loss)
    metrics = {"loss": losses.mean(), "held_out": judged}
    return State(clone, moments, best, best_loss, stale, key, state.iteration + 1), metrics
