"""The numbers a benchmark reports hang together; how large they are is for a quiet machine to say."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rhirl.simulators.benchmark import Comparable, measure, measure_memory, measure_planning_model, measure_threads
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.mujoco import MujocoSimulator
from test_simulator_mujoco import HOPPER


def test_throughput_is_compared_with_the_engine_and_with_gymnasium() -> None:
    assert isinstance(HOPPER.simulator(), Comparable)
    result = measure(lambda: MujocoSimulator("Hopper-v5"), samples=6, horizon=3, builds=2, repetitions=2)
    assert min(result[f"{name}steps_per_s"] for name in ("", "bare_", "gym_")) > 0
    assert result["ratio_to_bare"] == pytest.approx(result["steps_per_s"] / result["bare_steps_per_s"])
    assert result["ratio_to_gym"] == pytest.approx(result["steps_per_s"] / result["gym_steps_per_s"])
    assert measure_threads(lambda threads: HOPPER.simulator(threads=threads), samples=4, horizon=2)["speedup"] > 0


def test_a_simulator_without_an_engine_to_compare_with_is_timed_alone() -> None:
    def integrator() -> JaxSimulator:
        return JaxSimulator(lambda x, v: x + v, lambda x: x, lambda key: jnp.zeros(1), control_dim=1)

    result = measure(integrator, samples=6, horizon=3, repetitions=2)
    assert result["steps_per_s"] > 0
    assert "bare_steps_per_s" not in result


def test_the_bare_engine_does_the_same_work() -> None:
    simulator = HOPPER.simulator()
    state = simulator.reset(0)
    V = np.random.default_rng(0).uniform(-1, 1, (3, 5, 3)).astype(np.float32)
    records = simulator.bare_rollout(state, V)()
    assert isinstance(records, dict)
    qpos = records["qpos"][:, 3::4]
    np.testing.assert_array_equal(qpos[..., 1:], simulator.rollout(state, V).observations[:, 1:, :5])


def test_the_exact_model_has_no_error_and_a_coarse_one_has() -> None:
    exact, coarse = HOPPER.simulator(), HOPPER.simulator(integrator="implicitfast")
    same = measure_planning_model(exact, HOPPER.simulator(), samples=2, horizon=3, starts=2)
    assert same["error_after_K"] == same["relative_error_after_K"] == 0
    other = measure_planning_model(exact, coarse, samples=2, horizon=3, starts=2)
    assert 0 < other["error_after_1"] < 0.1
    assert 0 < other["relative_error_after_K"] < 0.1


def test_memory_stays_flat() -> None:
    result = measure_memory(HOPPER.simulator(), control_steps=300, samples=4)
    assert result["rss_mib"] > 10
    assert result["rss_growth_mib"] < 5
