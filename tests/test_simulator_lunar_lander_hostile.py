"""Hostile input to the lunar lander: a clear error or a masked rollout, never a wrong number."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rhirl.simulators.lunar_lander import LunarLanderSimulator
from rhirl.simulators.pendulum import PendulumSimulator

pytest.importorskip("Box2D")

SIMULATOR = LunarLanderSimulator(threads=1)
STATE = SIMULATOR.reset(0)


def test_a_rollout_with_nan_is_masked_and_its_neighbours_are_not() -> None:
    V = np.full((4, 6, 2), 0.8)
    V[1, 2, 0] = np.nan
    rollout = SIMULATOR.rollout(STATE, V)
    np.testing.assert_array_equal(rollout.valid, [True, False, True, True])
    assert np.isfinite(rollout.observations).all()
    np.testing.assert_array_equal(rollout.observations[0], rollout.observations[2])
    with pytest.raises(ValueError, match="must hold numbers"):
        SIMULATOR.step(STATE, [np.nan, 0])


@pytest.mark.parametrize("huge", [5.0, 1e300, np.inf])
def test_huge_controls_are_clipped(huge: float) -> None:
    sign = np.array([[[1, -1]], [[-1, 1]]])
    rollout = SIMULATOR.rollout(STATE, huge * sign)
    assert rollout.valid.all()
    np.testing.assert_array_equal(rollout.observations, SIMULATOR.rollout(STATE, 1.0 * sign).observations)
    np.testing.assert_array_equal(
        SIMULATOR.step(STATE, huge * sign[0, 0]).bodies, SIMULATOR.step(STATE, sign[0, 0]).bodies
    )


@pytest.mark.parametrize(("M", "K"), [(0, 5), (1, 1), (33, 1), (0, 1)])
def test_few_samples_and_short_horizons(M: int, K: int) -> None:
    for threads in (1, 2):
        rollout = LunarLanderSimulator(threads=threads).rollout(STATE, np.zeros((M, K, 2)))
        assert rollout.observations.shape == (M, K + 1, 8)
        assert rollout.observations.dtype == np.float32
        assert rollout.valid.shape == (M,)
        assert rollout.valid.all()


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (3, 0, 2), (2,)])
def test_controls_of_the_wrong_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="controls must have shape"):
        SIMULATOR.rollout(STATE, np.zeros(shape))
    if shape != (2,):
        with pytest.raises(ValueError, match="controls must have shape"):
            SIMULATOR.step(STATE, np.zeros(shape))


def test_dispersion_of_the_wrong_shape() -> None:
    with pytest.raises(ValueError, match="cannot be spread"):
        SIMULATOR.rollout(STATE, np.zeros((2, 3, 2)), dispersion=np.zeros((5, 2, 3, 2)))
    with pytest.raises(ValueError, match="broadcast"):
        SIMULATOR.step(STATE, [0, 0], dispersion=np.zeros(3))


@pytest.mark.parametrize(
    "state",
    [
        PendulumSimulator().reset(0),
        None,
        tuple(STATE),
        STATE._replace(bodies=STATE.bodies[:2]),
        STATE._replace(contacts=np.zeros((3, 6), np.int64)),
    ],
)
def test_the_state_of_another_task(state: Any) -> None:
    for use in (SIMULATOR.observe, lambda x: SIMULATOR.rollout(x, np.zeros((1, 1, 2)))):
        with pytest.raises(ValueError, match="of another task"):
            use(state)


@pytest.mark.parametrize(("column", "value"), [(0, 11), (0, -2), (1, 3), (1, -1), (2, 3), (2, -1)])
def test_a_contact_list_that_would_read_foreign_memory(column: int, value: int) -> None:
    damaged = deepcopy(STATE)
    damaged.contacts[0, column] = value
    with pytest.raises(ValueError, match="damaged"):
        SIMULATOR.rollout(damaged, np.zeros((1, 1, 2)))


@pytest.mark.parametrize("rows", [[(4, 1, 0), (4, 1, 0)], [(-1, 0, 0), (4, 1, 0)], [(-1, 0, 1)]])
def test_a_contact_list_with_repetitions_or_gaps(rows: list[tuple[int, int, int]]) -> None:
    damaged = deepcopy(STATE)
    damaged.contacts[: len(rows), :3] = rows
    with pytest.raises(ValueError, match="damaged"):
        SIMULATOR.step(damaged, [0, 0])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_state_that_blows_up_is_masked(value: float) -> None:
    broken = deepcopy(STATE)
    broken.bodies[1, 3] = value
    rollout = SIMULATOR.rollout(broken, np.zeros((2, 5, 2)))
    if np.isfinite(value):
        # Box2D lets no body move further than 2 m in a step.
        assert rollout.valid.all() == np.isfinite(rollout.observations).all()
    else:
        assert not rollout.valid.any()


def test_environments_it_cannot_read() -> None:
    with pytest.raises(TypeError, match="reads LunarLander-v3, not CartPole"):
        SIMULATOR.snapshot(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="reset the environment"):
        SIMULATOR.snapshot(gymnasium.make("LunarLander-v3", continuous=True))
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "continuous=True"),
        ({"continuous": True, "enable_wind": True}, "enable_wind=False"),
        ({"continuous": True, "gravity": -3.0}, "gravity is -3.0"),
    ]
    for options, message in cases:
        env = gymnasium.make("LunarLander-v3", **options)
        env.reset(seed=0)
        with pytest.raises(ValueError, match=message):
            SIMULATOR.snapshot(env)
        with pytest.raises(ValueError, match=message):
            SIMULATOR.restore(env, STATE)


def test_no_threads() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LunarLanderSimulator(threads=0)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(arrays(np.float64, (2, 3, 2), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_any_numbers_at_all(V: Any) -> None:
    rollout = SIMULATOR.rollout(STATE, V)
    np.testing.assert_array_equal(rollout.valid, ~np.isnan(V).any(axis=(1, 2)))
    assert np.isfinite(rollout.observations).all()
