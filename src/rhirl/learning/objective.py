"""The objective of RHIRL and its parts (paper, section 3).

    L(θ; D_t, x_t) = KL( p_E(V | x_t) ‖ p_Q(V | x_t; θ) )                                   eq. (5)
    ∂L/∂θ = (1/λ) [ mean over expert windows ∂S  −  Σ_j w_j ∂S_j ],   Σ_j w_j = 1            eq. (11)
    S(τ; θ) = Σ_{k=0…K} g(x_k; θ)                                                            eq. (3)

The paper divides the second sum by M although its weights are already normalised; that would shrink the planner's
side M-fold and the gradient would be no gradient of L. Here the weights sum to one and nothing is divided.

Shapes: `N` demonstrations, windows of `K + 1` states, `M` sampled sequences, each rolled out `M_s` times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

CostFunction = Callable[[Array], Array]
"""g: (..., n) → (...)"""


class ExpertStates(NamedTuple):
    """The demonstrations, laid out for cutting windows."""

    observations: Array
    """(N, T + 1 + K, *n) padded with K states that are never counted."""
    present: Array
    """(N, T + 1 + K) 1 where the demonstration has a state, 0 after its end."""


class Windows(NamedTuple):
    """The expert sub-trajectories D_t that start at time t."""

    observations: Array
    """(N, K + 1, *n)"""
    share: Array
    """(N, K + 1) share of each state in the mean over demonstrations: columns sum to one, or to zero past T."""


def expert_states(observations: ArrayLike, lengths: ArrayLike, K: int) -> ExpertStates:
    """Pad demonstrations (N, T + 1, *n), with `lengths` (N,) steps each, so that a window fits at every t ≤ T."""
    x = jnp.asarray(observations)
    padded = jnp.pad(x, [(0, 0), (0, K)] + [(0, 0)] * (x.ndim - 2), mode="edge")
    present = jnp.arange(padded.shape[1])[None, :] <= jnp.asarray(lengths)[:, None]
    return ExpertStates(padded, present.astype(jnp.float32))


def expert_windows(experts: ExpertStates, t: Array, K: int) -> Windows:
    """Cut D_t: the windows x_t … x_{t+K} of all demonstrations, cropped where they end."""
    observations = jax.lax.dynamic_slice_in_dim(experts.observations, t, K + 1, axis=1)
    present = jax.lax.dynamic_slice_in_dim(experts.present, t, K + 1, axis=1)
    return Windows(observations, present / jnp.maximum(present.sum(axis=0), 1.0))


def crop(windows: Windows) -> Array:
    """Return (K + 1,): 1 where some expert still has a state, 0 beyond.

    The planner's sums are cropped by the same mask. With windows of unequal length the gradient would move g by a
    constant, for no reason the demonstrations give.
    """
    return (windows.share.sum(axis=0) > 0).astype(jnp.float32)


def trajectory_cost(g: Array, mask: Array) -> Array:
    """S = Σ_k g(x_k) over the states that count: g (..., K + 1), mask (K + 1,) → (...)."""
    return g @ mask


def expected_cost(S: Array, M_s: int) -> Array:
    """S̃_j = mean of S over the M_s rollouts of sequence j: (M · M_s,) → (M,). The identity for M_s = 1."""
    return S if M_s == 1 else S.reshape(-1, M_s).mean(axis=1)


def resample(rollouts: Array, w: Array, count: int, M_s: int = 1) -> tuple[Array, Array]:
    """Draw `count` of M sequences by their weights: rollouts (count · M_s, K + 1, *n) and equal weights (count,).

    Systematic: a sequence of weight w comes up ⌊w · count⌋ or ⌈w · count⌉ times, so Σ w ∂S changes little, and the
    sequences without weight, which are most of them, are never differentiated.
    """
    total = w.sum()
    chosen = jnp.searchsorted(jnp.cumsum(w), total * (jnp.arange(count) + 0.5) / count)
    chosen = jnp.minimum(chosen, len(w) - 1)
    picked = rollouts.reshape(len(w), M_s, *rollouts.shape[1:])[chosen]
    return picked.reshape(count * M_s, *rollouts.shape[1:]), jnp.full(count, total / count)


def loss(
    cost: CostFunction,
    windows: Windows,
    rollouts: Array,
    w: Array,
    lam: Array,
    *,
    M_s: int = 1,
    penalty: float = 0.0,
) -> Array:
    """A scalar whose gradient in θ is ∂L/∂θ, with the weights held fixed.

    Args:
        cost: g(·; θ).
        windows: The expert windows D_t.
        rollouts: (M · M_s, K + 1, *n) the planner's states; every one finite, weight zero for those to ignore.
        w: (M,) weights of the planner's sequences.
        lam: Temperature λ.
        M_s: Rollouts per sequence.
        penalty: Coefficient of the mean of g² over both sides, which bounds the scale of g (zero in the paper).
    """
    mask = crop(windows)
    g_expert, g_planner = cost(windows.observations), cost(rollouts)
    S_expert = jnp.sum(windows.share * g_expert)
    S_planner = expected_cost(trajectory_cost(g_planner, mask), M_s)
    value = (S_expert - jnp.vdot(w, S_planner)) / lam
    if penalty:
        squares = jnp.sum(windows.share * g_expert**2) + jnp.vdot(w, expected_cost((g_planner**2) @ mask, M_s))
        value = value + penalty * squares / lam
    return value
