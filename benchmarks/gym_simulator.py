"""Steps per second of `GymSimulator` with 0, 1 and 2 worker processes against Gymnasium's own loop.

    python benchmarks/gym_simulator.py

The ways are timed in turn, round after round, so that whatever else the machine does hits them alike; the medians
of the rounds are printed, and the ratios to the plain loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.gym import GymSimulator

TASKS = ("MountainCarContinuous-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1")
M, K, ROUNDS = 200, 20, 9


def plain_loop(env: gymnasium.Env[Any, Any], actions: list[list[Any]]) -> None:
    """Step a Gymnasium environment through M sequences, with a reset before each."""
    for sequence in actions:
        env.reset(seed=0)
        for action in sequence:
            env.step(action)


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(task: str) -> NDArray[np.float64]:
    """Return median steps/s of the plain loop and of the simulator with 0, 1 and 2 workers."""
    make_env = partial(gymnasium.make, task)
    simulators = [GymSimulator(make_env, workers=n) for n in range(3)]
    state = simulators[0].reset(seed=0)
    # Alternating pushes keep the cart-pole upright, so that every way makes all M · K steps.
    V = np.random.default_rng(0).uniform(0, 1, (M, K, 1)) * (-1.0) ** np.arange(K)[:, None]
    actions = [[simulators[0].to_action(v) for v in sequence] for sequence in V]
    ways: list[Callable[[], object]] = [partial(plain_loop, make_env(), actions)]
    ways += [partial(simulator.rollout, state, V) for simulator in simulators]
    for way in ways:
        way()
    times = np.median([[seconds(way) for way in ways] for _ in range(ROUNDS)], axis=0)
    for simulator in simulators:
        simulator.close()
    return M * K / times


if __name__ == "__main__":
    print(f"{'task':26}{'plain loop':>12}{'0 workers':>16}{'1 worker':>16}{'2 workers':>16}   steps/s (ratio)")
    for task in TASKS:
        plain, *ours = compare(task)
        print(f"{task:26}{plain:12,.0f}" + "".join(f"{rate:10,.0f} ({rate / plain:.2f})" for rate in ours))
