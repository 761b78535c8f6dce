"""A system that is farther from the experts than any demonstration ever was keeps still."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rhirl.costs import Cost, network_of, normaliser_of
from rhirl.demos import Demonstrations, Metadata, from_episodes
from rhirl.learning import Config, Controller, Danger, learn_danger
from rhirl.learning.resign import Resignation, farthest
from rhirl.planning import Planner
from rhirl.simulators.jax import JaxSimulator

H = 3
LINE = JaxSimulator(lambda x, u: x + u, lambda x: x, lambda key: jnp.zeros(1), control_dim=1)
"""A point on a line, moved by its control."""
PLANNER = Planner(K=2, M=8, beta=0.1)
HEIGHT = jax.tree_util.Partial(lambda x: x[..., 0])
"""g(x) = x."""


def demonstrations(*episodes: list[float]) -> Demonstrations:
    meta = Metadata("line", "line", 0.0, (0.0,) * len(episodes), tuple(range(len(episodes))), "nobody", {})
    return from_episodes([np.array(e, np.float32)[:, None] for e in episodes], meta, horizon=6)


def danger(farthest: float = np.inf) -> Danger:
    """One that is nowhere."""
    normalise = normaliser_of(np.zeros((2, 1)), floor=1.0, limit=5.0)
    return Danger(Cost(normalise, network_of(jnp.zeros(2, jnp.uint32), (1,), (2,))), np.inf, farthest)


def test_the_farthest_is_the_largest_mean_over_successive_demonstrated_states() -> None:
    demos = demonstrations([0, 0, 3, 3, 0, 0, 0], [9, 0, 0], [9, 9])
    # Means over three states: 1, 2, 2, 1, 0 of the first, 3 of the second; the third has but two states.
    assert farthest(HEIGHT, demos, H) == 3.0
    assert farthest(HEIGHT, demos, 2) == 9.0


def test_who_is_too_short_tells_nothing() -> None:
    assert farthest(HEIGHT, demonstrations([9, 9], [5, 5]), H) == np.inf


def test_it_takes_a_while_to_resign_and_little_to_come_back() -> None:
    resigns = Resignation(lambda x: x[0], farthest=2.0, steps=H)
    seen = [3, 3, 3, 2, 1, 1, 9, 9]
    # Means of the last three: none, none, 3, 2.67, 2, 1.33, 3.67, 6.33.
    assert [resigns(np.array([x])) for x in seen] == [False, False, True, True, False, False, True, True]
    resigns.reset()
    assert not resigns(np.array([9.0]))


@pytest.mark.parametrize(("bound", "still"), [(2.0, [False, False, True, True]), (np.inf, [False] * 4)])
def test_a_controller_that_resigns_commands_nothing(bound: float, still: list[bool]) -> None:
    config = Config(planner=PLANNER, beyond=H, wary=1.0)
    controller = Controller.configured(LINE, HEIGHT, config, seed=0, proposal=None, danger=danger(bound))
    for _ in range(2):  # a new episode is a new hope
        controls = [controller.act(np.array([3.0], np.float32)) for _ in still]
        assert [bool((u == 0).all()) for u in controls] == still
        controller.reset()


def test_until_then_it_acts_as_who_never_resigns() -> None:
    config = Config(planner=PLANNER, beyond=H, wary=1.0)
    states = [np.array([x], np.float32) for x in (3.0, 3.0, 0.0, 0.0, 0.0)]
    acts = [
        [controller.act(x) for x in states]
        for bound in (2.0, np.inf)
        for controller in [Controller.configured(LINE, HEIGHT, config, seed=0, proposal=None, danger=danger(bound))]
    ]
    np.testing.assert_array_equal(acts[0], acts[1])


def test_danger_knows_of_it_where_a_cost_tells_who_goes_astray() -> None:
    config, demos = Config(planner=PLANNER, beyond=H), demonstrations([0, 0, 3, 3, 0, 0, 0], [1, 0])
    ask = partial(learn_danger, LINE, demos, config, np.zeros_like, 0.1, systems=8)
    assert ask(cost=HEIGHT).farthest == 2.0
    assert ask().farthest == np.inf


def test_danger_keeps_it_in_its_file_and_older_files_know_of_none(tmp_path: Path) -> None:
    for bound in (0.25, np.inf):
        known = danger(bound)
        Danger(known.logit, 0.5, known.farthest).save(tmp_path / "danger.safetensors")
        read = Danger.load(tmp_path / "danger.safetensors")
        assert (read.usual, read.farthest) == (0.5, bound)
