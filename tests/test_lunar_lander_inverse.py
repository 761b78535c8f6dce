"""A lander put where an observation was made flies on as the one that was observed."""

from __future__ import annotations

import numpy as np
import pytest

from rhirl.demos import load_demos
from rhirl.simulators import InvertibleSimulator, expected_step
from rhirl.simulators.lunar_lander import LunarLanderSimulator

SIMULATOR = LunarLanderSimulator(threads=1)
FLYING, LANDED = 60, 150


@pytest.mark.parametrize("seed", range(4))
def test_in_flight_the_state_comes_back_and_flies_on_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = SIMULATOR.reset(seed)
    for i in range(30):
        state = SIMULATOR.step(state, rng.uniform(-1, 1, 2), seed=i)
    seen = SIMULATOR.observe(state)
    again = SIMULATOR.state_from_observation(seen)
    np.testing.assert_allclose(SIMULATOR.observe(again), seen, atol=1e-5)
    V = rng.uniform(-1, 1, (4, 15, 2))
    truth, repeated = (SIMULATOR.rollout(start, V).observations for start in (state, again))
    assert np.abs(truth - truth[:, :1]).max() > 0.1
    np.testing.assert_allclose(repeated, truth, atol=5e-4)


def test_a_landed_lander_is_set_down_where_it_stood() -> None:
    observation = load_demos("lunar_lander", noise=0.0).observations[0, LANDED]
    assert observation[6:].all()
    state = SIMULATOR.state_from_observation(observation)
    assert not state.touched.any()
    for _ in range(10):
        state = SIMULATOR.step(state, np.full(2, -0.4))
    np.testing.assert_allclose(SIMULATOR.observe(state), observation, atol=0.01)


def test_the_same_observation_gives_the_same_state_and_others_stand_over_other_ground() -> None:
    demos = load_demos("lunar_lander", noise=0.0).observations
    first, again, other = (SIMULATOR.state_from_observation(demos[i, FLYING]) for i in (0, 0, 1))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.terrain, other.terrain)


def test_it_says_that_it_can_and_what_it_cannot() -> None:
    assert isinstance(SIMULATOR, InvertibleSimulator)
    for nonsense in (np.zeros(7), np.full(8, np.nan)):
        with pytest.raises(ValueError, match="8 finite numbers"):
            SIMULATOR.state_from_observation(nonsense)


def test_near_a_state_that_stands_the_lander_stands_at_once() -> None:
    """Its legs and what they touch are not observed: they are taken from where it stood a step ago."""
    state = SIMULATOR.state_from_observation(load_demos("lunar_lander", noise=0.0).observations[0, LANDED])
    for _ in range(10):
        state = SIMULATOR.step(state, np.full(2, -0.4))
    assert state.touched.tolist() == [False, True, True]
    seen = SIMULATOR.observe(state)
    again = SIMULATOR.state_from_observation(seen, near=state)
    np.testing.assert_allclose(SIMULATOR.observe(again), seen, atol=1e-5)
    V = np.random.default_rng(0).uniform(-1, 1, (4, 15, 2))
    truth, repeated, alone = (
        SIMULATOR.rollout(start, V).observations for start in (state, again, SIMULATOR.state_from_observation(seen))
    )
    np.testing.assert_allclose(repeated, truth, atol=1e-3)
    assert np.abs(alone - truth).max() > 0.5


def test_the_mean_step_has_no_dispersion() -> None:
    state, v = SIMULATOR.reset(0), np.array([1.0, 0.0])
    mean = SIMULATOR.observe(expected_step(SIMULATOR)(state, v))
    np.testing.assert_array_equal(mean, SIMULATOR.rollout(state, v[None, None]).observations[0, 1])
    draws = np.array([SIMULATOR.observe(SIMULATOR.step(state, v, seed=i)) for i in range(200)])
    assert draws.std(axis=0)[3] > 0.005
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=4 * draws.std(axis=0).max() / np.sqrt(200))
