"""Planning for control noise: each sequence under several draws of it, and only what survives them is a plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.demos import disturbed
from rhirl.learning import Controller
from rhirl.planning import Planner
from rhirl.simulators import Rollout

NOISE = 0.5


class Cliff:
    """A walker on a line, x' = x + v/5, that falls at x = 1; it remembers what it was asked to roll out."""

    observation_shape = (1,)
    control_dim = 1
    asked: NDArray[Any]

    def reset(self, seed: int) -> NDArray[np.float64]:
        return np.array([0.6])

    def observe(self, state: NDArray[np.float64]) -> NDArray[np.float32]:
        return state.astype(np.float32)

    def step(self, state: NDArray[np.float64], control: NDArray[Any], seed: int = 0) -> NDArray[np.float64]:
        return np.asarray(state + np.clip(control, -1, 1) / 5)

    def terminated(self, state: NDArray[np.float64]) -> bool:
        return bool(state[0] >= 1)

    def rollout(self, state: NDArray[np.float64], controls: NDArray[Any], seed: int = 0) -> Rollout:
        self.asked = controls
        steps = np.cumsum(np.clip(controls, -1, 1) / 5, axis=1)
        x = np.concatenate([np.zeros_like(steps[:, :1]), steps], axis=1) + state
        return Rollout(x.astype(np.float32), np.ones(len(x), bool), np.logical_or.reduce(x[..., 0] >= 1, axis=1))


def controller(draws: int, noise: float = NOISE, M: int = 200) -> Controller:
    """Walk towards the cliff: the farther the better, up to the edge."""
    planner = Planner(K=4, M=M, beta=0.3, ess=0.05, survive=True, draws=draws, smooth_window=1)
    return Controller(Cliff(), lambda x: -x[..., 0], planner, noise=noise)


def walk(draws: int, seed: int) -> tuple[bool, float]:
    """Walk twenty steps under noise; returns whether it fell, and where it was last."""
    planner, cliff, rng = controller(draws), Cliff(), np.random.default_rng(seed)
    planner.reset(seed)
    state = cliff.reset(0)
    for _ in range(20):
        state = cliff.step(state, disturbed(planner.act(state), NOISE, rng))
        if cliff.terminated(state):
            return True, float(state[0])
    return False, float(state[0])


def test_who_plans_for_noise_keeps_away_from_the_edge() -> None:
    bold, careful = ([walk(draws, seed) for seed in range(20)] for draws in (1, 8))
    assert sum(fell for fell, _ in bold) >= 15
    assert sum(fell for fell, _ in careful) <= 3
    assert np.mean([x for fell, x in careful if not fell]) > 0.4  # and yet goes near it


def test_all_sequences_meet_the_same_draws() -> None:
    planner = controller(draws=3, M=10)
    planner.act(planner.simulator.reset(0))
    cliff = planner.simulator
    assert isinstance(cliff, Cliff)
    asked = cliff.asked.reshape(10, 3, 4, 1)
    differences = asked - asked[:, :1]
    np.testing.assert_allclose(differences, np.broadcast_to(differences[:1], differences.shape), atol=1e-6)
    assert np.abs(differences[:, 1:]).min() > 0
    first = cliff.asked.copy()
    planner.act(planner.simulator.reset(0))
    assert np.abs(cliff.asked.reshape(10, 3, 4, 1)[0, 1] - first[1]).max() > 0.1  # new luck at every step


@pytest.mark.parametrize(("draws", "noise"), [(1, 0.5), (4, 0.0)])
def test_without_noise_or_draws_every_sequence_is_rolled_out_once_as_it_is(draws: int, noise: float) -> None:
    planner, plain = controller(draws, noise), controller(1, 0.0)
    state = plain.simulator.reset(0)
    np.testing.assert_array_equal(planner.act(state), plain.act(state))
    assert isinstance(planner.simulator, Cliff)
    assert planner.simulator.asked.shape == (200, 4, 1)


@pytest.mark.parametrize(
    ("ended", "usable"),
    [
        ([[0, 0], [0, 1], [1, 1]], [True, False, False]),
        ([[1, 0], [0, 1], [1, 1]], [True, True, False]),  # none survives every draw: those that end least often
        ([[1, 1], [1, 1], [1, 1]], [True, True, True]),
    ],
)
def test_sequences_that_end_least_often_are_plans(ended: list[list[int]], usable: list[bool]) -> None:
    rollout = Rollout(np.zeros((6, 2, 1)), np.ones(6, bool), np.array(ended, bool).ravel())
    assert rollout.usable(True, 2).tolist() == np.repeat(usable, 2).tolist()
    assert rollout.usable(False, 2).all()
