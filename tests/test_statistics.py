"""Statistics over seeds: cases worked by hand, and rliable's answers to the same questions.

rliable does not install beside the package's other pins without holding pandas back, so its answers lie in
rliable_reference.json, with the inputs; benchmarks/rliable_reference.py made them and says how.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rhirl.experiments.tables.statistics import (
    interquartile_mean,
    interval,
    pooled_iqm,
    probability_of_improvement,
    resample,
)

REFERENCE = json.loads((Path(__file__).parent / "rliable_reference.json").read_text())
every_case = pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda case: case["name"])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([3.0], 3.0),
        ([1.0, 5.0, 9.0], 5.0),  # a quarter of three is none
        ([0.0, 1.0, 3.0, 100.0], 2.0),
        ([9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -7.0], 3.5),  # two off at each end
    ],
)
def test_interquartile_means_by_hand(scores: list[float], expected: float) -> None:
    assert interquartile_mean(np.array(scores)) == expected


def test_an_outlier_moves_the_mean_but_not_the_interquartile_mean() -> None:
    calm, wild = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 4e9])
    assert interquartile_mean(calm) == interquartile_mean(wild) == 2.5


def test_pooling_counts_every_seed_of_every_task() -> None:
    strata = [np.array([0.0, 10.0]), np.array([1.0, 2.0, 3.0, 4.0])]
    assert pooled_iqm(strata) == 2.5  # one of the six off at each end: 1, 2, 3, 4


def test_probability_of_improvement_by_hand() -> None:
    x, y = np.array([1.0, 3.0]), np.array([2.0, 3.0, 0.0])
    assert probability_of_improvement([x], [y]) == pytest.approx((1 + 2.5) / 6)
    assert probability_of_improvement([y], [x]) == pytest.approx(1 - 3.5 / 6)
    always = [np.array([5.0]), x]
    assert probability_of_improvement(always, [np.array([4.0]), y]) == pytest.approx((1 + 3.5 / 6) / 2)


def test_a_method_compared_with_itself_is_no_improvement() -> None:
    x = [np.random.default_rng(0).normal(size=7)]
    assert probability_of_improvement(x, x) == 0.5


@pytest.mark.parametrize("pair", [([], []), ([np.ones(2)], [np.ones(2), np.ones(2)])])
def test_methods_are_compared_on_the_same_tasks(pair: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="same tasks"):
        probability_of_improvement(*pair)


def test_resampling_stays_inside_each_task() -> None:
    strata = [np.array([1.0, 2.0]), np.array([10.0, 20.0, 30.0])]
    low, high = resample(strata, np.random.default_rng(0), 50)
    assert (low.shape, high.shape) == ((50, 2), (50, 3))
    assert set(low.ravel()) == {1.0, 2.0}
    assert set(high.ravel()) == {10.0, 20.0, 30.0}


def test_an_interval_has_the_width_the_normal_distribution_gives_a_mean() -> None:
    scores = [np.random.default_rng(1).normal(2.0, 1.0, 400)]

    def mean(strata: Any) -> Any:
        return np.concatenate(strata, axis=-1).mean(axis=-1)

    low, high = interval(mean, scores, resamples=4_000)
    error = scores[0].std() / 20
    assert low == pytest.approx(scores[0].mean() - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(scores[0].mean() + 1.96 * error, abs=0.15 * error)


def test_intervals_repeat_and_one_seed_has_no_width() -> None:
    scores = [np.array([0.3, 0.9, 0.5])]
    assert interval(pooled_iqm, scores) == interval(pooled_iqm, scores)
    assert interval(pooled_iqm, [np.array([0.7])]) == (0.7, 0.7)


@every_case
def test_point_estimates_are_rliables(case: dict[str, Any]) -> None:
    x, y = (list(np.array(case[name]).T) for name in "xy")
    assert pooled_iqm(x) == pytest.approx(case["iqm"], abs=1e-12)
    assert probability_of_improvement(x, y) == pytest.approx(case["improvement"], abs=1e-12)


@every_case
def test_intervals_are_rliables_within_what_resampling_scatters(case: dict[str, Any]) -> None:
    x, y = (list(np.array(case[name]).T) for name in "xy")
    ours = interval(pooled_iqm, x, resamples=REFERENCE["resamples"])
    width = case["iqm_interval"][1] - case["iqm_interval"][0]
    assert ours == pytest.approx(case["iqm_interval"], abs=0.03 * width)
    ours = interval(probability_of_improvement, x, y, resamples=REFERENCE["resamples"])
    assert ours == pytest.approx(case["improvement_interval"], abs=0.03)
