"""Randomness: the same seed gives the same bits, another seed others, and nobody else's randomness is touched."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rhirl.experiments.seeds import BLOCK, DEMONSTRATION, EVALUATION, REFERENCE, VALIDATION, episode_seeds
from rhirl.learning import RHIRL
from rhirl.learning.streams import draw
from rhirl.simulators.pendulum import PendulumSimulator

Bits = Callable[[Any], list[bytes]]
Make = Callable[..., RHIRL]
STEPS = 60
NUMPYS: Any = vars(np.random.mtrand)["_rand"]  # the generator behind np.random.seed and np.random.rand


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(
    make_learner: Make, bits: Bits, noise: float
) -> None:
    a, b, c = (bits(make_learner(noise=noise, seed=seed).learn(STEPS).state) for seed in (3, 3, 4))
    assert a == b
    assert sum(x != y for x, y in zip(a, c, strict=True)) > len(a) / 2


def test_process_noise_follows_the_seed_too(make_learner: Make, bits: Bits) -> None:
    a, b = (bits(make_learner(PendulumSimulator(process_noise=0.3)).learn(STEPS).state) for _ in range(2))
    assert a == b
    assert a != bits(make_learner().learn(STEPS).state)


def test_learners_in_one_process_do_not_interact(make_learner: Make, bits: Bits) -> None:
    alone = [bits(make_learner(noise=0.5, seed=seed).learn(STEPS).state) for seed in (0, 1)]
    together = [make_learner(noise=0.5, seed=seed) for seed in (0, 1)]
    for i in range(STEPS):
        for learner in together:
            learner.step()
            if i % 20 == 0:
                learner.act(learner.simulator.reset(i))
    assert [bits(learner.state) for learner in together] == alone


def test_global_random_state_is_neither_read_nor_touched(make_learner: Make, bits: Bits) -> None:
    found = []
    for seed in (0, 1):
        NUMPYS.seed(seed)
        random.seed(seed)
        before = (NUMPYS.get_state(legacy=False), random.getstate())
        learner = make_learner(PendulumSimulator(process_noise=0.1), noise=0.5).learn(STEPS)
        learner.act(learner.simulator.reset(0))
        after = (NUMPYS.get_state(legacy=False), random.getstate())
        assert repr(before) == repr(after)
        found.append(bits(learner.state))
    assert found[0] == found[1]


def test_the_blocks_of_seeds_do_not_overlap() -> None:
    owners = (VALIDATION, EVALUATION, DEMONSTRATION, REFERENCE)
    ends = [(episode_seeds(owner, 0, BLOCK)[0], episode_seeds(owner, 99_999, BLOCK)[-1]) for owner in owners]
    for (_, last), (first, _) in pairwise(ends):
        assert last < first
    assert episode_seeds(EVALUATION, 1, 3) == [EVALUATION + BLOCK, EVALUATION + BLOCK + 1, EVALUATION + BLOCK + 2]
    assert set(episode_seeds(EVALUATION, 0, BLOCK)).isdisjoint(episode_seeds(EVALUATION, 1, BLOCK))


def test_training_draws_below_what_is_evaluated(make_learner: Make) -> None:
    learner = make_learner(seed=12345)
    draws = [draw(learner.seed, stream, i) for stream in range(5) for i in range(250)]
    assert max(draws) < VALIDATION
    assert len(set(draws)) == len(draws)


@pytest.mark.parametrize(("seed", "episodes"), [(-1, 5), (100_000, 5), (0, -1), (0, 0), (0, BLOCK + 1)])
def test_seeds_outside_their_block_are_refused(seed: int, episodes: int) -> None:
    with pytest.raises(ValueError, match="seed must lie in"):
        episode_seeds(EVALUATION, seed, episodes)
