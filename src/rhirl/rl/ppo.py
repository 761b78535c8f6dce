"""Proximal policy optimisation of a policy whose noise is known: the mathematics, and nothing of the systems led.

    v_t = tanh μ(x_t; ψ) + ε_t,   ε_t ~ N(0, σ²)

The noise is the system's own, so log-densities are exact and there is no deviation to learn. Shapes: N systems led
for L steps each, observations (n,), controls (m,).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rhirl.rl.networks import Actor

CLIP = 0.2
"""How far from one a ratio of densities may go and still be a reason to go further."""


class Steps(NamedTuple):
    """Steps that were taken, and what they were worth."""

    x: Array
    """(S, n) where."""
    u: Array
    """(S, m) what the policy said there when they were taken."""
    v: Array
    """(S, m) what was done, before it was clipped to the box."""
    advantage: Array
    """(S,)"""
    worth: Array
    """(S,) the return that V(x) is to predict."""


def advantages(r: Array, V: Array, lasted: Array, gamma: float, trace: float) -> Array:
    """Return generalised advantages A (N, L) of rewards r (N, L), with values V (N, L + 1).

        δ_t = r_t + γ V_{t+1} − V_t,   A_t = δ_t + γ κ A_{t+1}

    A system that lasted for fewer than L steps was lost by the one after them: nothing comes behind that, and it is
    worth nothing. Where no step was taken, A is zero.
    """
    t = jnp.arange(r.shape[1])
    lost, taken = t == lasted[:, None], t <= lasted[:, None]
    on = gamma * ~lost
    delta = jnp.where(lost, 0.0, r) + on * V[:, 1:] - V[:, :-1]

    def back(A: Array, step: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        delta, on, taken = step
        A = jnp.where(taken, delta + trace * on * A, 0.0)
        return A, A

    return jax.lax.scan(back, jnp.zeros(len(r)), (delta.T, on.T, taken.T), reverse=True)[1].T


def control(actor: Actor, x: Array) -> Array:
    """Return what the policy says: u = tanh μ(x), (S, m)."""
    return jnp.tanh(actor(x)[0])


def log_likelihood(u: Array, v: Array, noise: Array) -> Array:
    """log N(v; u, σ²) without its constant: (S, m) → (S,)."""
    return -0.5 * (((v - u) / noise) ** 2).sum(-1)


def surrogate(actor: Actor, steps: Steps, noise: Array) -> Array:
    """What is to be made small: −E min(ρ A, clip(ρ, 1 ± CLIP) A), ρ being the ratio of new to old density."""
    new, old = (log_likelihood(u, steps.v, noise) for u in (control(actor, steps.x), steps.u))
    ratio = jnp.exp(new - old)
    return -jnp.minimum(ratio * steps.advantage, ratio.clip(1 - CLIP, 1 + CLIP) * steps.advantage).mean()
