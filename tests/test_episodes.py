"""Where learning episodes begin and end: at initial states, or at demonstrated ones and their time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from rhirl.demos import load_demos
from rhirl.learning import RHIRL, Config
from rhirl.learning.episodes import Episodes
from rhirl.planning import Planner
from rhirl.simulators import InvertibleSimulator
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.mujoco import MujocoSimulator
from rhirl.simulators.pendulum import PendulumSimulator

DEMOS = load_demos("pendulum", noise=0.0).take(4)
SMALL = Config(planner=Planner(K=5, M=8), parallel=4)


@pytest.fixture
def make_episodes() -> Callable[..., Episodes]:
    def make(seed: int = 0, **settings: Any) -> Episodes:
        return Episodes(PendulumSimulator(), DEMOS, replace(SMALL, **settings), seed)

    return make


def test_without_demonstrated_starts_every_episode_begins_at_time_zero_and_runs_to_the_end(
    make_episodes: Callable[..., Episodes],
) -> None:
    episodes = make_episodes()
    starts = [episodes.begin(e) for e in range(4, 40)]
    assert {start.t for start in starts} == {0}
    assert {start.end for start in starts} == {100}
    assert len({tuple(start.system) for start in starts}) == 36


def test_the_first_round_is_cut_short_by_turns(make_episodes: Callable[..., Episodes]) -> None:
    assert [make_episodes().begin(e).end for e in range(5)] == [25, 50, 75, 100, 100]
    assert [make_episodes(span=40).begin(e).end for e in range(5)] == [10, 20, 30, 40, 40]


def test_a_demonstrated_start_is_the_state_of_a_demonstration_at_its_time(
    make_episodes: Callable[..., Episodes],
) -> None:
    episodes = make_episodes(starts=1.0, span=30)
    for e in range(4, 60):
        system, t, end = episodes.begin(e)
        seen = PendulumSimulator().observe(system)
        assert np.abs(DEMOS.observations[:, t] - seen).max(axis=-1).min() < 1e-6
        assert end == min(100, t + 30)


def test_the_share_of_demonstrated_starts_is_as_asked(make_episodes: Callable[..., Episodes]) -> None:
    episodes = make_episodes(starts=0.5)
    demonstrated = np.mean([episodes.begin(e).t > 0 for e in range(2000)])
    assert demonstrated == pytest.approx(0.5 * 0.99, abs=0.035)  # one in a hundred of them begins at time 0


def test_an_episode_depends_on_the_seed_and_its_number_alone(make_episodes: Callable[..., Episodes]) -> None:
    first, again, other = make_episodes(3, starts=0.5), make_episodes(3, starts=0.5), make_episodes(4, starts=0.5)
    for e in (9, 2, 7):
        np.testing.assert_array_equal(first.begin(e).system, again.begin(e).system)
    assert any(first.begin(e).t != other.begin(e).t for e in range(10))


def test_the_learner_keeps_the_time_of_the_start_and_ends_episodes_after_their_span() -> None:
    config = replace(SMALL, starts=1.0, span=6)
    learner, episodes = (
        RHIRL(PendulumSimulator(), DEMOS, config, seed=1),
        Episodes(PendulumSimulator(), DEMOS, config, 1),
    )
    for _ in range(20):
        before = learner.state
        learner.step()
        same = learner.state.episode == before.episode
        np.testing.assert_array_equal(learner.state.t[same], before.t[same] + 1)
        for b in np.flatnonzero(~same):
            assert before.t[b] + 1 == before.end[b]
            start = episodes.begin(int(learner.state.episode[b]))
            assert (learner.state.t[b], learner.state.end[b]) == (start.t, start.end)
            assert not np.asarray(learner.state.U[b]).any()
    assert learner.state.episode.max() >= 12


def test_resuming_in_the_middle_of_demonstrated_episodes_changes_nothing() -> None:
    config = replace(SMALL, starts=0.5, span=7)
    whole = RHIRL(PendulumSimulator(), DEMOS, config, seed=2).learn(24)
    half = RHIRL(PendulumSimulator(), DEMOS, config, seed=2).learn(11)
    rest = RHIRL(PendulumSimulator(), DEMOS, config, seed=2)
    rest.restore(half.state)
    rest.learn(24)
    np.testing.assert_array_equal(whole.cost(DEMOS.observations), rest.cost(DEMOS.observations))


def test_a_simulator_that_cannot_be_put_there_is_refused_with_what_to_do() -> None:
    simulator = JaxSimulator(lambda x, u: x, lambda x: x, lambda key: jnp.zeros(3), control_dim=1)
    assert not isinstance(simulator, InvertibleSimulator)
    with pytest.raises(ValueError, match="starts=0"):
        Episodes(simulator, DEMOS, replace(SMALL, starts=0.5), 0)


def test_both_engines_that_can_be_put_there_say_so() -> None:
    assert isinstance(PendulumSimulator(), InvertibleSimulator)
    assert isinstance(MujocoSimulator("Hopper-v5"), InvertibleSimulator)


def test_the_pendulum_comes_back_from_its_observation() -> None:
    simulator = PendulumSimulator()
    for theta, omega in [(0.3, -2.0), (-3.0, 7.9), (3.1, 0.0)]:
        state = simulator.state_from_observation(simulator.observe(np.array([theta, omega])))
        np.testing.assert_allclose(state, [theta, omega], atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "complaint"), [({"starts": 1.5}, "between 0 and 1"), ({"span": 0}, "at least 1")]
)
def test_settings_without_sense_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(SMALL, **settings)
