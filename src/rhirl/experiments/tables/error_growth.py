"""How far the states of a learned controller drift from the expert's, as the task gets longer.

The paper bounds the total variation between the state distributions by T √(ε/2), linear in the length T, where
behaviour cloning's regret is quadratic. Total variation cannot be estimated from samples of a continuous state; the
Wasserstein distance between the marginals of x_t can, and it grows at the pace of the gap itself. With N episodes
of each, sorted in every coordinate i, in units of the expert's deviation s_i:

    W(t) = mean over i of  (1/N) Σ_j |x_(j),i − y_(j),i| / s_i

Two sets of expert episodes have a distance W₀(t) > 0 too, by sampling alone. The rest, summed over t ≤ T, grows as
T^p: p = 1 where the error stays as it is, p = 2 where it grows in step with time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Episodes = NDArray[np.float64]
"""(N, T + 1, n)"""
FIT_FROM = 0.1
"""Share of the time before which the sum is not fitted: there it knows little but the common start."""


def wasserstein(x: Episodes, y: Episodes) -> NDArray[np.float64]:
    """Return W(t) for t = 1 … T between as many episodes of each; y is the expert's."""
    if len(x) != len(y):
        raise ValueError(f"as many episodes of both are needed, not {len(x)} and {len(y)}")
    scale = np.maximum(y.std(axis=(0, 1)), 1e-6)
    gaps = np.abs(np.sort(x[:, 1:], axis=0) - np.sort(y[:, 1:], axis=0)) / scale
    return gaps.mean(axis=(0, 2))


def summed_error(learned: Episodes, expert: Episodes, again: Episodes) -> NDArray[np.float64]:
    """Return Σ_{t ≤ T} W(t) − W₀(t) for every T; `again` are other episodes of the expert."""
    return np.cumsum(wasserstein(learned, expert) - wasserstein(again, expert))


def growth_exponent(total: NDArray[np.float64]) -> float:
    """Fit `total` ∝ T^p by least squares between logarithms; return p, NaN where there is no error to speak of."""
    T = np.arange(1, len(total) + 1)
    kept = (total > 0) & (len(total) * FIT_FROM <= T)
    if kept.sum() < len(total) / 2:
        return float("nan")
    return float(np.polyfit(np.log(T[kept]), np.log(total[kept]), 1)[0])


def exponent_interval(
    learned: Episodes, expert: Episodes, again: Episodes, *, resamples: int = 200, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of p, over episodes of all three.

    Episodes drawn twice lie further from others than fresh ones, which shifts all resamples the same way; they
    are therefore centred on p.
    """
    rng = np.random.default_rng(seed)

    def drawn(episodes: Episodes) -> Episodes:
        return episodes[rng.integers(len(episodes), size=len(episodes))]

    found = [growth_exponent(summed_error(drawn(learned), drawn(expert), drawn(again))) for _ in range(resamples)]
    if np.isnan(found).all():
        return float("nan"), float("nan")
    low, middle, high = np.nanquantile(found, [0.025, 0.5, 0.975])
    p = growth_exponent(summed_error(learned, expert, again))
    return float(p + low - middle), float(p + high - middle)
