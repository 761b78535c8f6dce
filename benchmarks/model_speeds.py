"""Measure how many steps a core simulates in a second, for the estimates of `rhirl grid --dry-run`.

    OMP_NUM_THREADS=1 taskset --cpu-list 0 python benchmarks/model_speeds.py

Time is the process's own (CPU seconds), so that a busy machine does not matter; rollouts have the size of a task's
default preset, from random starts. Writes src/rhirl/experiments/grids/speeds.json.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import tyro

from rhirl.experiments.hardware import hardware
from rhirl.experiments.presets import configure
from rhirl.experiments.run import surroundings
from rhirl.tasks import get_task

TARGET = Path(__file__).parent.parent / "src/rhirl/experiments/grids/speeds.json"


def main(
    tasks: tuple[str, ...] = ("pendulum", "lunar_lander", "hopper", "walker2d", "ant"), seconds: float = 1.0
) -> None:
    """Measure tasks for so many CPU seconds each; others keep what was measured before."""
    known = json.loads(TARGET.read_text())["simulated_steps_per_s"] if TARGET.exists() else {}
    for task in tasks:
        known[task] = round(speed(task, seconds))
        print(f"{task}: {known[task]:,} steps/s")
    TARGET.write_text(json.dumps({"simulated_steps_per_s": known, **hardware(), **surroundings()}, indent=1) + "\n")


def speed(name: str, seconds: float) -> float:
    """Roll random plans out from random starts, one warming up."""
    task = get_task(name)
    simulator, planner = task.simulator(), configure(task).planner
    rng = np.random.default_rng(0)
    shape = (planner.M, planner.K, task.control_dim)
    simulator.rollout(simulator.reset(0), np.zeros(shape, np.float32))
    steps, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        controls = rng.uniform(-1, 1, shape).astype(np.float32)
        simulator.rollout(simulator.reset(int(rng.integers(2**20))), controls)
        steps += planner.M * planner.K
    return steps / (time.process_time() - began)


if __name__ == "__main__":
    tyro.cli(main)
