"""Measure how many steps a core simulates in a second while RHIRL learns, for `rhirl grid --dry-run`.

    OMP_NUM_THREADS=1 taskset --cpu-list 0 python benchmarks/model_speeds.py

Time is the process's own (CPU seconds), so that a busy machine does not matter; control steps are those of a task's
default preset, learning included. Writes src/rhirl/experiments/grid/built_in/speeds.json.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import jax
import tyro

from rhirl.experiments.presets import configure
from rhirl.learning import RHIRL
from rhirl.machine import hardware, surroundings
from rhirl.proposals import untrained_proposal
from rhirl.tasks import get_task

TARGET = Path(__file__).parent.parent / "src/rhirl/experiments/grid/built_in/speeds.json"


TASKS = ("pendulum", "windy_pendulum", "lunar_lander", "hopper", "walker2d", "ant", "car_racing")


def main(tasks: tuple[str, ...] = TASKS, seconds: float = 2.0) -> None:
    """Measure tasks for so many CPU seconds each; others keep what was measured before."""
    known = json.loads(TARGET.read_text())["simulated_steps_per_s"] if TARGET.exists() else {}
    for task in tasks:
        known[task] = round(speed(task, seconds))
        print(f"{task}: {known[task]:,} steps/s")
    TARGET.write_text(json.dumps({"simulated_steps_per_s": known, **hardware(), **surroundings()}, indent=1) + "\n")


def speed(name: str, seconds: float) -> float:
    """Take control steps; the first two compile."""
    task = get_task(name)
    demos, config = task.demonstrations(), configure(task)
    proposal = untrained_proposal(demos, task.control_dim) if config.guided else None
    learner = RHIRL(task.simulator(), demos, config, proposal=proposal).learn(2)
    jax.block_until_ready(learner.state.network)
    before, began = int(learner.state.simulated), time.process_time()
    while time.process_time() - began < seconds:
        learner.step()
        jax.block_until_ready(learner.state.network)
    return (int(learner.state.simulated) - before) / (time.process_time() - began)


if __name__ == "__main__":
    tyro.cli(main)
