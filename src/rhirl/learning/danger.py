"""How dangerous is a state? Ask the simulator what becomes of a proposal there, amid noise.

Without noise a plan can be followed to see whether the task goes on behind it (`beyond.py`). Amid noise the answer
is a probability, and what happened once says little. So many systems are led by the proposal π from initial and
demonstrated states, under the noise it rehearsed amid or, without rehearsals, that of its demonstrator. With τ, the
steps until the task is lost (∞ if it never is), danger is the chance to be lost before a clock stops that may stop
at every step:

    d(x; φ) = E[ γ^τ | x_0 = x, v_t = π(x_t) + ε_t, ε_t ~ N(0, σ²) ]

It is learned from what became of the systems, by logistic regression. A planner that minds danger adds to the cost
what exceeds the danger d₀ that demonstrations pass through as well:

    S = Σ_k g(x_k; θ) + c Σ_k max(0, log(1 − d₀) − log(1 − d(x_k; φ)))

No reward enters: the simulator says where a task is lost. Where one can be lost without an end (`astray`), a system
is also lost from where the learned cost stays above zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import ArrayLike, NDArray

from rhirl.costs import Cost, Network, load_cost, load_notes, network_of, normaliser_of, save_cost
from rhirl.demos import Demonstrations
from rhirl.learning.beyond import LAST
from rhirl.learning.config import Config
from rhirl.learning.episodes import Episodes
from rhirl.learning.objective import CostFunction
from rhirl.learning.resign import farthest
from rhirl.learning.streams import DANGER, draw
from rhirl.simulators import Led, Policy, Simulator, lead

SYSTEMS, SPAN = 1_500, 4
"""How many systems are led, and for how many times `beyond` steps."""
LEAST = 0.1
"""What a loss counts that is `beyond` steps ahead: γ is the root of it. Twice as far ahead counts nothing."""
USUAL = 0.9
"""Share of the demonstrated states whose danger is none."""
UPDATES, BATCH, LR = 4_000, 1_024, 1e-3


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Danger:
    """max(0, log(1 − d₀) − log(1 − d(x))): zero where demonstrations go, without bound where all is lost."""

    logit: Cost
    """Of d."""
    usual: float
    """−log(1 − d₀)"""
    farthest: float = math.inf
    """ḡ_E, beyond which a system resigns (`resign.py`); none does where no cost tells who has gone astray."""

    def __call__(self, x: Array) -> Array:
        """Return it for any batch of observations: (..., n) → (...)."""
        return jnp.maximum(0.0, jax.nn.softplus(self.logit(x)) - self.usual)

    def save(self, path: Path) -> None:
        """Write a file like that of a cost."""
        notes = {"usual": self.usual, "farthest": self.farthest}
        save_cost(self.logit, path, {name: value for name, value in notes.items() if math.isfinite(value)})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read it back."""
        return cls(load_cost(path), **load_notes(path))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WaryCost:
    """A cost that minds danger, c times."""

    cost: CostFunction
    danger: Danger
    c: float

    def __call__(self, x: Array) -> Array:
        """Return it for any batch of observations: (..., n) → (...)."""
        return self.cost(x) + self.c * self.danger(x)


def learn_danger(
    simulator: Simulator,
    demos: Demonstrations,
    config: Config,
    proposal: Policy,
    noise: ArrayLike,
    *,
    seed: int = 0,
    systems: int = SYSTEMS,
    cost: CostFunction | None = None,
) -> Danger:
    """Learn d(x; φ), and what of it is usual.

    Args:
        simulator: Through which systems are led.
        demos: Where half of them begin, if the configuration's `starts` says so.
        config: `beyond`, `starts` and how a network looks.
        proposal: The policy π, which takes batches (N, n).
        noise: Deviation σ of the control noise, a number or (m,).
        seed: Of everything random.
        systems: How many are led.
        cost: By which to tell who has gone astray, if that is to count.
    """
    L, first = SPAN * config.beyond, draw(seed, DANGER)
    episodes = Episodes(simulator, demos, config, seed)
    starts = [episodes.begin(first + i).system for i in range(systems)]
    led = lead(simulator, starts, proposal, noise, L, seed)
    if cost is not None:
        g = np.asarray(cost(jnp.asarray(led.observations)))
        led = led._replace(lasted=before_astray(g, led.lasted, config.beyond))
    x, y = outcomes(led, gamma_of(config), L // 2)
    normalise = normaliser_of(x, floor=config.floor, limit=config.limit)
    network = network_of(jax.random.key(seed), demos.observation_shape, config.hidden)
    network = fit(jax.random.key(first), network, normalise(jnp.asarray(x)), jnp.asarray(y))
    logit = Cost(normalise, network)
    usual = float(np.quantile(jax.nn.softplus(logit(jnp.asarray(demos.states()))), USUAL))
    return Danger(logit, usual) if cost is None else Danger(logit, usual, farthest(cost, demos, config.beyond))


def gamma_of(config: Config) -> float:
    """Return γ, by which a loss counts less for every step it is ahead."""
    return float(LEAST ** (1 / config.beyond))


def before_astray(g: NDArray[Any], lasted: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Return the steps (N,) before each system is lost, by an end or because it has gone astray and stays there.

    Astray is where the mean of g (N, L + 1) over the last few steps exceeds zero. To stay there is to be there for
    at least so many steps until L: who is astray for a moment, or when all is over, may come back.
    """
    L = g.shape[1] - 1
    ending = np.lib.stride_tricks.sliding_window_view(g, LAST, axis=1).mean(axis=-1) > 0
    well = np.concatenate([np.ones((len(g), LAST - 1), bool), ~ending], axis=1)
    last = L - well[:, ::-1].argmax(axis=1)
    return np.where((lasted == L) & (last <= L - least), last, lasted)


def outcomes(led: Led, gamma: float, ahead: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return states x (S, n) and γ^τ (S,), zero where the task is not lost.

    Only states with so many steps ahead of them are asked: among the later ones, losses alone would be known.
    """
    L = led.observations.shape[1] - 1
    t, lasted = np.arange(L - ahead + 1), led.lasted[:, None]
    discounted = np.where(lasted < L, gamma ** (lasted + 1.0 - t), 0.0)
    there = t <= lasted
    return led.observations[:, : len(t)][there], discounted[there].astype(np.float32)


@jax.jit
def fit(key: Array, network: Network, z: Array, y: Array) -> Network:
    """Fit logits to outcomes y (S,) in [0, 1] at normalised states z (S, n): Adam, its rate falls to zero."""
    optimiser = optax.flatten(optax.adam(optax.cosine_decay_schedule(LR, UPDATES)))

    def loss(network: Network, chosen: Array) -> Array:
        return optax.sigmoid_binary_cross_entropy(network(z[chosen]), y[chosen]).mean()

    def update(carry: tuple[Network, Any], key: Array) -> tuple[tuple[Network, Any], None]:
        network, moments = carry
        chosen = jax.random.randint(key, (BATCH,), 0, len(y))
        step, moments = optimiser.update(jax.grad(loss)(network, chosen), moments, network)
        return (optax.apply_updates(network, step), moments), None

    return jax.lax.scan(update, (network, optimiser.init(network)), jax.random.split(key, UPDATES))[0][0]
