"""Growth of the state error with T: distances and exponents that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.experiments.tables.error_growth import exponent_interval, growth_exponent, summed_error, wasserstein

T = 30


def states(seed: int, speed: float = 0.0, shift: float = 0.0, N: int = 200) -> NDArray[Any]:
    """Gaussian states whose mean is shifted, and moves on at a speed of so many deviations a step."""
    noise = np.random.default_rng(seed).normal(size=(N, T + 1, 2))
    return noise + shift + speed * np.arange(T + 1)[None, :, None]


def test_the_distance_by_hand() -> None:
    expert = np.array([[[0.0], [1.0]], [[0.0], [3.0]]])  # at t = 1: 1 and 3
    learned = np.array([[[0.0], [8.0]], [[0.0], [2.0]]])  # at t = 1: 8 and 2, sorted 2 and 8
    deviation = np.std([0.0, 0.0, 1.0, 3.0])
    assert wasserstein(learned, expert) == pytest.approx([(1 + 5) / 2 / deviation])


def test_a_shift_is_its_own_distance() -> None:
    expert = states(0)
    assert wasserstein(expert + 0.7, expert) == pytest.approx(np.full(T, 0.7), rel=0.02)
    assert wasserstein(expert, expert) == pytest.approx(np.zeros(T))


def test_as_many_episodes_of_both_are_needed() -> None:
    with pytest.raises(ValueError, match="as many episodes"):
        wasserstein(states(0, N=3), states(1, N=4))


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_is_its_own(power: float) -> None:
    assert growth_exponent(3.0 * np.arange(1.0, 101.0) ** power) == pytest.approx(power, abs=1e-9)


def test_no_error_has_no_exponent() -> None:
    assert np.isnan(growth_exponent(np.zeros(10)))


def test_sampling_alone_is_no_error() -> None:
    total = summed_error(states(3), states(1), states(2))
    assert abs(total[-1]) < 0.05 * summed_error(states(3, shift=1.0), states(1), states(2))[-1]


def test_a_steady_gap_grows_linearly_and_a_widening_one_quadratically() -> None:
    expert, again = states(1), states(2)
    assert growth_exponent(summed_error(states(3, shift=1.0), expert, again)) == pytest.approx(1.0, abs=0.03)
    assert growth_exponent(summed_error(states(3, speed=0.3), expert, again)) == pytest.approx(2.0, abs=0.08)


def test_an_interval_encloses_its_exponent_and_repeats() -> None:
    sets = states(3, speed=0.3, N=60), states(1, N=60), states(2, N=60)
    low, high = exponent_interval(*sets, resamples=20)
    assert low < growth_exponent(summed_error(*sets)) < high
    assert high - low < 0.4
    assert exponent_interval(*sets, resamples=20) == (low, high)
