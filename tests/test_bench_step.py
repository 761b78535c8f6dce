"""What a control step is timed with; how long it takes is for a quiet machine to say."""

from __future__ import annotations

import pytest

from rhirl.experiments.bench import measure_step

SMALL = ("parallel=2", "planner.M=6", "planner.K=4", "hidden=(8,)")


def test_a_control_step_is_timed_beside_its_rollouts() -> None:
    result = measure_step("pendulum", overrides=(*SMALL, "planner.knots=None"), repetitions=1, steps=1)
    assert (result["M"], result["K"], result["parallel"]) == (6, 4, 2)
    # Of a single repetition the median is the one there is.
    assert result["ratio"] == pytest.approx(result["step_ms"] / result["rollouts_ms"])
    assert result["episode_ms"] == pytest.approx(result["step_ms"] * 100 / 2)
    assert result["fastest_episode_ms"] == pytest.approx(result["episode_ms"])


@pytest.mark.parametrize(("noise", "M", "K"), [(0.0, 6, 4), (0.5, 5, 3)])
def test_amid_noise_the_step_is_the_one_that_is_learned_with(noise: float, M: int, K: int) -> None:
    acting = ("as_acting=True", "exact=True", "amid_noise.M=5", "amid_noise.K=3")
    result = measure_step("hopper", overrides=(*SMALL, *acting), noise=noise, repetitions=1, steps=1)
    assert (result["noise"], result["M"], result["K"]) == (noise, M, K)
