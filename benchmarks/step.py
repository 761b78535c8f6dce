"""Time of one control step (plan and learn) over the time of its rollouts alone, side by side in one run.

python benchmarks/step.py pendulum --out results/bench/step-pendulum.json
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
import tyro

from rhirl.demos import load_demos
from rhirl.experiments import configure
from rhirl.experiments.run import surroundings
from rhirl.learning import RHIRL
from rhirl.tasks import get_task


def measure(task: str, preset: str, parallel: int | None, repetitions: int, steps: int) -> dict[str, Any]:
    """Alternate stretches of control steps with the same number of bare rollouts."""
    benchmark = get_task(task)
    config = configure(benchmark, preset)
    config = replace(config, parallel=parallel or config.parallel, iterations=10**9)
    simulator = benchmark.simulator()
    learner = RHIRL(simulator, load_demos(task), config)
    V = np.random.default_rng(0).uniform(-1, 1, (config.planner.M, config.planner.K, benchmark.control_dim))
    controls = V.astype(np.float32)

    def learn() -> None:
        for _ in range(steps):
            learner.step()
        jax.device_get(learner.state.network)

    def roll_out() -> None:
        for _ in range(steps):
            for system in learner.state.systems:
                simulator.rollout(system, controls)

    learn()
    roll_out()
    times = np.array([[_seconds(learn), _seconds(roll_out)] for _ in range(repetitions)]) / steps
    return {
        "task": task,
        "preset": preset,
        "parallel": config.parallel,
        "M": config.planner.M,
        "K": config.planner.K,
        "step_ms": 1e3 * median(times[:, 0]),
        "rollouts_ms": 1e3 * median(times[:, 1]),
        "ratio": median(times[:, 0] / times[:, 1]),
        "episode_ms": 1e3 * median(times[:, 0]) * benchmark.T / config.parallel,
        "fastest_episode_ms": 1e3 * float(times[:, 0].min()) * benchmark.T / config.parallel,
        **surroundings(),
    }


def main(
    task: tyro.conf.Positional[str] = "pendulum",
    /,
    presets: tuple[str, ...] = ("paper", "default"),
    parallel: int | None = None,
    repetitions: int = 15,
    steps: int = 100,
    out: Path | None = None,
) -> None:
    """Measure and print; `episode_ms` is a whole learning episode of T steps, per episode."""
    results = [measure(task, preset, parallel, repetitions, steps) for preset in presets]
    text = json.dumps(results, indent=1)
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n")


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    tyro.cli(main)
