"""Benchmarks of a task: its simulator, and one control step of the learner. Contestants alternate in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

from rhirl.experiments.methods.ours import learns_with
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import configure
from rhirl.learning import RHIRL
from rhirl.machine import surroundings
from rhirl.proposals import untrained_proposal
from rhirl.simulators.benchmark import measure
from rhirl.tasks import get_task


def measure_simulator(task: str, *, repetitions: int = 5) -> dict[str, Any]:
    """Time rollouts of the size the paper plans with, against the bare engine and Gymnasium's loop."""
    benchmark = get_task(task)
    planner = configure(benchmark, "paper").planner
    result = measure(benchmark.simulator, samples=planner.M, horizon=planner.K, repetitions=repetitions)
    return {"task": task, **result, **surroundings()}


def measure_step(
    task: str,
    *,
    preset: str = "default",
    overrides: Sequence[str] = (),
    noise: float = 0.0,
    repetitions: int = 10,
    steps: int = 50,
    demos: Path | None = None,
) -> dict[str, Any]:
    """Alternate stretches of control steps (plan and learn) with the same number of bare rollouts.

    They are those with which `rhirl train` learns on a system with this control noise.

    `ratio` is the time of a control step over that of its rollouts; `floor` that of the rollouts and of the cost of
    what they saw, with which no step can do less; `episode_ms` a whole learning episode of T steps, where several
    run side by side divided by their number.
    """
    benchmark = get_task(task)
    endless = replace(configure(benchmark, preset, overrides), iterations=10**9)
    simulator, config = learns_with(benchmark, endless, noise)
    shown = find_demos(task, noise, demos)
    learner = RHIRL(
        simulator,
        shown,
        config,
        noise=noise,
        proposal=untrained_proposal(shown, benchmark.control_dim) if config.guided else None,
    )
    shape = (config.planner.M, config.planner.K, benchmark.control_dim)
    controls = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)

    def learn() -> None:
        for _ in range(steps):
            learner.step()
        jax.device_get(learner.state.network)  # waits for the last update

    def roll_out() -> None:
        for _ in range(steps):
            for system in learner.state.systems:
                simulator.rollout(system, controls)

    g, network = jax.jit(lambda cost, x: cost(x)), learner.learned_cost

    def roll_out_and_weigh() -> None:
        for _ in range(steps):
            seen = [simulator.rollout(system, controls).observations for system in learner.state.systems]
            jax.device_get(g(network, np.stack(seen)))

    contestants = (learn, roll_out, roll_out_and_weigh)
    for contestant in contestants:
        contestant()
    times = np.array([[_seconds(contestant) for contestant in contestants] for _ in range(repetitions)]) / steps
    per_episode = 1e3 * benchmark.T / config.parallel
    return {
        "task": task,
        "preset": preset,
        "overrides": list(overrides),
        "noise": noise,
        "parallel": config.parallel,
        "M": config.planner.M,
        "K": config.planner.K,
        "step_ms": 1e3 * median(times[:, 0]),
        "rollouts_ms": 1e3 * median(times[:, 1]),
        "ratio": median(times[:, 0] / times[:, 1]),
        "floor": median(times[:, 2] / times[:, 1]),
        "episode_ms": per_episode * median(times[:, 0]),
        "fastest_episode_ms": per_episode * float(times[:, 0].min()),
        **surroundings(),
    }


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
