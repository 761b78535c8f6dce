"""Few seeds, honest numbers: interquartile means, stratified bootstrap intervals, probability of improvement.

The definitions are those of Agarwal et al. (NeurIPS 2021), whose package is rliable; a test holds them to it.

A set of scores is a list of strata, one array of seeds per task (tasks may have different numbers of seeds):

    IQM      = mean of the middle half of all scores, strata pooled
    P(X > Y) = mean over tasks of  (1 / nm) Σ_ij [x_i > y_j] + ½ [x_i = y_j]

The bootstrap draws seeds with replacement inside each stratum, so that every resample has every task; intervals are
the percentiles of the statistic over resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Strata = Sequence[NDArray[np.float64]]
RESAMPLES, CONFIDENCE = 2_000, 0.95


def interquartile_mean(scores: NDArray[Any], axis: int = -1) -> NDArray[np.float64]:
    """Average what is left when a quarter (rounded down) of the values is cut off at each end."""
    ordered = np.sort(np.moveaxis(np.asarray(scores, np.float64), axis, -1), axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def pooled_iqm(strata: Strata) -> NDArray[np.float64]:
    """Return the IQM over all tasks and seeds; leading axes of the strata are resamples."""
    return interquartile_mean(np.concatenate(list(strata), axis=-1))


def probability_of_improvement(x: Strata, y: Strata) -> NDArray[np.float64]:
    """Return the chance that a seed of X beats a seed of Y on a task, averaged over the tasks."""
    if len(x) != len(y) or not x:
        raise ValueError("the probability of improvement compares two methods on the same tasks, at least one")
    return np.mean([_wins(a, b) for a, b in zip(x, y, strict=True)], axis=0)


def _wins(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of pairs (..., n) × (..., m) that x wins; a tie is half a win."""
    difference = np.asarray(x)[..., :, None] - np.asarray(y)[..., None, :]
    return ((np.sign(difference) + 1) / 2).mean(axis=(-2, -1))


def resample(strata: Strata, rng: np.random.Generator, resamples: int = RESAMPLES) -> list[NDArray[np.float64]]:
    """Draw seeds with replacement inside each stratum: (n,) → (resamples, n)."""
    return [rng.choice(np.asarray(stratum, np.float64), (resamples, len(stratum))) for stratum in strata]


def interval(
    statistic: Callable[..., NDArray[np.float64]],
    *samples: Strata,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the bootstrap interval of a statistic of one or more independent sets of scores.

    Args:
        statistic: From sets of strata, with resamples as leading axis, to one value per resample.
        samples: The sets of scores.
        resamples: How many resamples.
        confidence: How much of them lies inside.
        seed: Of the draws; the same results always give the same interval.
    """
    rng = np.random.default_rng(seed)
    drawn = statistic(*(resample(strata, rng, resamples) for strata in samples))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
