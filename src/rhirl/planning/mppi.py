"""Model-predictive path integral control (MPPI), as pure functions.

One control step of the paper's Algorithm 1, without the learning:

    V_j ~ N(U, βI), j = 1…M                              `sample`; some around a guide instead of U
    S_j = Σ_k g(x_k)                                     the simulator and the cost, outside this room
    w_j ∝ exp(−S_j/λ − c Σ_k u_kᵀ (βI)⁻¹ v_kʲ), Σw = 1   `weigh`
    U  ← Σ_j w_j V_j                                     `update`
    U  ← Savitzky–Golay over the horizon                 `smooth`
    execute u_0, then U ← (u_1, …, u_{K−1}, 0)           `warm_start`

Shapes: `M` sampled sequences, horizon `K`, `m` controls. Nominal plan `U: (K, m)`, sequences `V: (M, K, m)`,
trajectory costs `S: (M,)`, weights `w: (M,)`. Controls live in [-1, 1]. A random key given to a function is
consumed by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rhirl.planning.bases import knot_basis, savitzky_golay


@dataclass(frozen=True)
class Planner:
    """How MPPI samples and weighs. The defaults are what we recommend; tasks set K, M and β."""

    K: int = 20
    """Horizon: how many control steps each sampled sequence looks ahead."""
    M: int = 100
    """Number of control sequences sampled at each step."""
    beta: float = 0.5
    """Exploration covariance β: sequences are drawn from N(U, βI) in the [-1, 1] control box."""
    alpha: float = 1.0
    """Probability that a sequence is drawn around the nominal plan; the others are uniform over the control box."""
    guided: float = 0.0
    """Share of the sequences drawn around what a proposal policy would do from here, instead of around the plan."""
    lam: float = 0.1
    """Temperature λ of the weights exp(−S/λ). Used when `ess` is not set."""
    ess: float | None = None
    """Choose λ at every step so that the effective sample size is this fraction of M."""
    control_term: float = 0.0
    """Coefficient c of the control term u'(βI)⁻¹v in the weights; the paper has 1."""
    nominal: bool = True
    """Whether the un-noised nominal plan is one of the M sequences."""
    knots: int | None = None
    """Draw the noise on this many spline knots along the horizon instead of at every step."""
    smooth_window: int = 5
    """Window of the Savitzky–Golay filter over the horizon (odd); 1 switches it off."""
    smooth_order: int = 2
    """Polynomial order of the Savitzky–Golay filter."""
    survive: bool = False
    """Give no weight to rollouts in which the task is lost (a fall, a crash), unless it is lost in all of them."""

    def __post_init__(self) -> None:
        _require(self.K >= 1, f"K (the horizon) must be at least 1, not {self.K}")
        _require(self.M >= 1, f"M (the number of samples) must be at least 1, not {self.M}")
        _require(self.beta > 0, f"beta must be positive, not {self.beta}: without exploration there is no gradient")
        _require(0 <= self.alpha <= 1, f"alpha is a probability, not {self.alpha}")
        _require(0 <= self.guided <= 1, f"guided is a share, not {self.guided}")
        _require(self.lam > 0, f"lam (λ) must be positive, not {self.lam}")
        _require(self.ess is None or 0 < self.ess <= 1, f"ess is a fraction of M in (0, 1], not {self.ess}")
        _require(
            self.knots is None or 2 <= self.knots <= self.K, f"knots must lie in [2, K={self.K}], not {self.knots}"
        )
        _require(
            self.smooth_window == 1 or (self.smooth_window % 2 == 1 and self.smooth_order < self.smooth_window),
            f"smooth_window must be odd and exceed smooth_order, not {self.smooth_window}, {self.smooth_order}",
        )


class Weighing(NamedTuple):
    """The weights of M sequences, and what they were made with."""

    w: Array
    """(M,) normalised weights, Σw = 1."""
    lam: Array
    """() the temperature λ used."""
    ess: Array
    """() effective sample size 1 / Σw², between 1 and M."""


def sample(key: Array, U: Array, planner: Planner, guide: Array | None = None) -> Array:
    """Draw V (M, K, m): N(U, βI) with probability α, uniform over the control box otherwise, clipped to the box.

    The last sequences, as many as `guided` says, are drawn around a guide (K, m) instead of U, if there is one.
    Clipping comes before weighing, so that weights, plan and simulator all see the controls that would be executed.
    """
    K, m = U.shape
    own = planner.M if guide is None else planner.M - round(planner.guided * planner.M)
    shape = (planner.M, K if planner.knots is None else planner.knots, m)
    key_noise, key_uniform, key_choice = jax.random.split(key, 3)

    noise = jnp.sqrt(planner.beta) * jax.random.normal(key_noise, shape)
    if planner.knots is not None:
        noise = jnp.asarray(knot_basis(K, planner.knots, unit_variance=True)) @ noise
    centre = U if guide is None else jnp.where(jnp.arange(planner.M)[:, None, None] < own, U, guide)
    around_plan = centre + noise
    if planner.alpha == 1:
        V = around_plan
    else:
        anywhere = jax.random.uniform(key_uniform, shape, minval=-1.0, maxval=1.0)
        if planner.knots is not None:
            anywhere = jnp.asarray(knot_basis(K, planner.knots)) @ anywhere
        near = jax.random.bernoulli(key_choice, planner.alpha, (planner.M, 1, 1))
        V = jnp.where(near, around_plan, anywhere)
    if planner.nominal and own > 0:
        V = V.at[0].set(U)
    if planner.nominal and guide is not None and own < planner.M:
        V = V.at[-1].set(guide)
    return jnp.clip(V, -1.0, 1.0)


def weigh(S: Array, U: Array, V: Array, planner: Planner) -> Weighing:
    """Weigh M sequences: w_j ∝ exp(−S_j/λ − c Σ_k u_kᵀ (βI)⁻¹ v_kʲ).

    An infinite or undefined S_j gets no weight; if no sequence has a finite cost the weights are uniform, and the
    caller should keep its plan (`update` does).
    """
    control = planner.control_term * jnp.einsum("km,jkm->j", U, V) / planner.beta
    if planner.ess is None:
        lam = jnp.asarray(planner.lam, S.dtype)
    else:
        lam = temperature_for_ess(S, planner.ess * planner.M, control)
    w = weights(S, lam, control)
    return Weighing(w, lam, effective_sample_size(w))


def weights(S: Array, lam: Array | float, control: Array | float = 0.0) -> Array:
    """Normalise exp(−S/λ − control) over the M samples, in log space with the minimum cost subtracted first."""
    usable = jnp.isfinite(S)
    S_min = jnp.min(jnp.where(usable, S, jnp.inf))
    log_w = jnp.where(usable, -(S - S_min) / lam - control, -jnp.inf)
    return jnp.where(jnp.any(usable), jax.nn.softmax(log_w), 1.0 / S.shape[0])


def effective_sample_size(w: Array) -> Array:
    """ESS = 1 / Σ w_j²: M for uniform weights, 1 when one sample has all the weight."""
    return 1.0 / jnp.sum(w**2)


def temperature_for_ess(S: Array, target: float, control: Array | float = 0.0, *, iterations: int = 24) -> Array:
    """Find λ with ESS(λ) = target by bisection on log λ, between 1e-4 and 1e4 times the spread of S.

    ESS grows with λ, so bisection needs no derivative; a target that no λ in the range reaches gives its end.
    """
    usable = jnp.isfinite(S)
    spread = jnp.std(S, where=usable) if S.shape[0] > 1 else jnp.asarray(1.0)
    spread = jnp.where(jnp.isfinite(spread) & (spread > 0), spread, 1.0)

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        too_cold = effective_sample_size(weights(S, spread * jnp.exp(middle), control)) < target
        return jnp.where(too_cold, middle, low), jnp.where(too_cold, high, middle)

    reach = jnp.log(jnp.asarray(1e4, S.dtype))
    low, high = jax.lax.fori_loop(0, iterations, halve, (-reach, reach))
    return spread * jnp.exp(0.5 * (low + high))


def update(w: Array, V: Array, U: Array, S: Array) -> Array:
    """U ← Σ_j w_j V_j, or U as it was if no sample has a finite cost."""
    return jnp.where(jnp.any(jnp.isfinite(S)), jnp.einsum("j,jkm->km", w, V), U)


def smooth(U: Array, planner: Planner) -> Array:
    """Filter the plan over the horizon by Savitzky–Golay. Short horizons shrink the window to fit."""
    A = savitzky_golay(U.shape[0], planner.smooth_window, planner.smooth_order)
    return U if A is None else jnp.clip(A @ U, -1.0, 1.0)


def warm_start(U: Array) -> Array:
    """Drop the executed control and append zero: U ← (u_1, …, u_{K−1}, 0)."""
    return jnp.concatenate([U[1:], jnp.zeros_like(U[:1])])


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
