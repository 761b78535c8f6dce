"""Rehearse a proposal amid the noise it will act under: no demonstration shows how to come back.

A clone of a noisy demonstrator is soon where no expert has been, and lost there. The learned cost tells how well it
does in such places too, and failing in a simulator costs nothing. So round by round N systems are led by the
proposal π(x; ψ) from initial and demonstrated states, under the noise of the system it is for,

    v_t = π(x_t; ψ) + ε_t,   ε_t ~ N(0, σ²),   r_t = 1 − g(x_{t+1}; θ), within [0, 2], until the task is lost

and ψ descends PPO's objective (`rhirl.rl.ppo`), held back by how likely the demonstrated controls are:

    −E min(ρ A, clip(ρ) A)  −  c E log N(v_E; π(x_E; ψ), σ²)

The noise explores by itself, so nothing is added to it. No reward of the task enters: the simulator says where a
task is lost and, where one can be lost without an end (`astray`), the learned cost does.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from rhirl.costs import Cost, Network, Normaliser, Pixels, network_of
from rhirl.demos import Demonstrations
from rhirl.learning import Config, Episodes, before_astray, gamma_of
from rhirl.learning.streams import REHEARSAL, draw
from rhirl.rl import Actor, Policy, to_numpy
from rhirl.rl.ppo import Steps, advantages, control, log_likelihood, surrogate
from rhirl.simulators import Simulator, lead

STEPS = 25_600
"""Taken in a round, if no system is lost: each is led for the configuration's `span`."""
TRACE = 0.9
"""κ: how much of an advantage is what happened rather than what V expects."""
UPDATES, BATCH, DEMONSTRATED = 100, 2_048, 512
"""Of each round, with so many steps and so many demonstrated pairs in each."""
LR, LR_VALUE, LARGEST = 3e-4, 1e-3, 1.0
"""Learning rates of π and V, and the largest norm of the gradient of π."""
ANCHOR = 0.03
"""c"""
Normalise = Normaliser | Pixels
Pairs = tuple[NDArray[np.float32], NDArray[np.float32]]
Parameters = tuple[Actor, Network]
OPTIMISER = optax.partition(
    {
        "actor": optax.flatten(optax.chain(optax.clip_by_global_norm(LARGEST), optax.adam(LR))),
        "value": optax.flatten(optax.adam(LR_VALUE)),
    },
    ("actor", "value"),
)


class Rehearsed(NamedTuple):
    """Everything a rehearsal knows between two rounds."""

    actor: Actor
    value: Network
    """V, of normalised observations."""
    moments: Any
    noise: Array
    """(m,) σ"""
    round: NDArray[np.int64]
    """() rounds so far."""
    led: NDArray[np.int64]
    """() steps taken in them."""
    settled: NDArray[np.bool_]
    """() whether so few systems were lost in the last round that nothing was learned from it."""


class Report(NamedTuple):
    """What became of the systems of a round."""

    reward: float
    """Mean of r over all steps."""
    lost: float
    """Share of the systems that were lost."""


class Rehearsal:
    """Rounds of practice.

    Args:
        simulator: Through which systems are led.
        demos: Where a share of them begins (`starts`).
        config: `starts`, `span`, `beyond`, `astray` and how a network looks.
        pairs: Demonstrated observations (S, n) and the controls (S, m) that explain them.
        cost: The learned cost g.
        seed: Of everything random.
        enough: Share of lost systems below which a proposal is left as it is.
    """

    def __init__(
        self,
        simulator: Simulator,
        demos: Demonstrations,
        config: Config,
        pairs: Pairs,
        cost: Cost,
        seed: int,
        *,
        enough: float = 0.0,
    ) -> None:
        self._simulator, self._config, self._cost, self._seed = simulator, config, cost, seed
        self._enough = enough
        self._episodes = Episodes(simulator, demos, config, seed)
        self._pairs = jax.tree.map(jnp.asarray, pairs)
        self._length = demos.horizon if config.span is None else config.span

    def begin(self, actor: Actor, noise: NDArray[Any]) -> Rehearsed:
        """Begin with a policy and the deviation (m,) of the noise."""
        key = jax.random.key(draw(self._seed, REHEARSAL))
        value = network_of(key, self._simulator.observation_shape, self._config.hidden)
        actor, zero = jax.tree.map(jnp.asarray, actor), np.asarray(0, np.int64)
        moments, sigma = OPTIMISER.init((actor, value)), jnp.asarray(noise, jnp.float32)
        return Rehearsed(actor, value, moments, sigma, zero, zero, np.asarray(False))

    def round(self, state: Rehearsed) -> tuple[Rehearsed, Report]:
        """Lead systems once, and learn from what became of them unless enough of them lasted."""
        first, config, L = draw(self._seed, REHEARSAL, int(state.round)), self._config, self._length
        starts = [self._episodes.begin(first + i).system for i in range(max(1, STEPS // L))]
        led = lead(self._simulator, starts, Policy(to_numpy(state.actor)).act, state.noise, L, first)
        g = np.asarray(self._cost(jnp.asarray(led.observations)))
        lasted = before_astray(g, led.lasted, config.beyond) if config.astray else led.lasted
        taken = np.arange(L) <= lasted[:, None]
        r = np.where(np.arange(L) < lasted[:, None], 1.0 - g[:, 1:].clip(-1.0, 1.0), 0.0)
        report = Report(float(r[taken].mean()), float((lasted < L).mean()))
        count = np.asarray(state.led + led.lasted.sum(), np.int64)
        if report.lost < self._enough:
            return state._replace(led=count, settled=np.asarray(True)), report
        steps = appraise(state, self._cost.normalise, led.observations, led.controls, r, lasted, gamma_of(config))
        rng = np.random.default_rng(first)
        chosen = rng.choice(np.flatnonzero(taken), (UPDATES, BATCH))
        shown = rng.integers(len(self._pairs[0]), size=(UPDATES, DEMONSTRATED))
        (actor, value), moments = improve(state, self._cost.normalise, steps, self._pairs, chosen, shown)
        done = np.asarray(state.round + 1)
        return state._replace(actor=actor, value=value, moments=moments, round=done, led=count), report


@partial(jax.jit, static_argnames="gamma")
def appraise(
    state: Rehearsed, normalise: Normalise, x: Array, v: Array, r: Array, lasted: Array, gamma: float
) -> Steps:
    """Tell what every step was worth, of systems led through x (N, L + 1, n) by v (N, L, m): all N · L of them.

    Advantages are measured in their own deviation, over the steps that were taken.
    """
    V = state.value(normalise(x))
    A = advantages(r, V, lasted, gamma, TRACE)
    taken = jnp.arange(r.shape[1]) <= lasted[:, None]
    mean, deviation = A.mean(where=taken), A.std(where=taken)
    steps = Steps(x[:, :-1], control(state.actor, x[:, :-1]), v, (A - mean) / (deviation + 1e-8), A + V[:, :-1])
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:]), steps)


@jax.jit
def improve(
    state: Rehearsed, normalise: Normalise, steps: Steps, pairs: tuple[Array, Array], chosen: Array, shown: Array
) -> tuple[Parameters, Any]:
    """Update π and V with the steps chosen (UPDATES, BATCH), among the demonstrated pairs shown (UPDATES, ·)."""

    def loss(parameters: Parameters, steps: Steps, x: Array, v: Array) -> Array:
        actor, value = parameters
        anchor = -log_likelihood(control(actor, x), v, state.noise).mean()
        missed = ((value(normalise(steps.x)) - steps.worth) ** 2).mean()
        return surrogate(actor, steps, state.noise) + ANCHOR * anchor + missed

    def update(carry: tuple[Parameters, Any], index: tuple[Array, Array]) -> tuple[tuple[Parameters, Any], None]:
        parameters, moments = carry
        batch, (x, v) = jax.tree.map(lambda part: part[index[0]], steps), (part[index[1]] for part in pairs)
        gradient = jax.grad(loss)(parameters, batch, x, v)
        step, moments = OPTIMISER.update(gradient, moments)
        return (optax.apply_updates(parameters, step), moments), None

    return jax.lax.scan(update, ((state.actor, state.value), state.moments), (chosen, shown))[0]
