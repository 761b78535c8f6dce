"""Measure how many steps a core makes in a second while RHIRL or a rival learns, for `rhirl grid --dry-run`.

    OMP_NUM_THREADS=1 taskset --cpu-list 0 python benchmarks/model_speeds.py
    OMP_NUM_THREADS=1 taskset --cpu-list 0 python benchmarks/model_speeds.py --tasks ant --methods gail

RHIRL's steps are those it simulates, a rival's those it executes; both with a task's default preset, learning
included. Time is the process's own (CPU seconds), so that a busy machine does not matter. Writes
src/rhirl/experiments/grid/built_in/speeds.json.
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import tyro

from rhirl.baselines import AIRL, FIRL, GAIL, Imitator
from rhirl.experiments.methods import get_method
from rhirl.experiments.methods.rivals import make_system
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import choose, configure
from rhirl.learning import RHIRL
from rhirl.machine import hardware, surroundings
from rhirl.proposals import untrained_proposal
from rhirl.tasks import get_task

TARGET = Path(__file__).parent.parent / "src/rhirl/experiments/grid/built_in/speeds.json"


TASKS = ("pendulum", "windy_pendulum", "lunar_lander", "hopper", "walker2d", "ant", "car_racing")
RIVALS: dict[str, type[Imitator[Any]]] = {"firl": FIRL, "airl": AIRL, "gail": GAIL}
VECTORS = ("pendulum", "lunar_lander", "hopper", "walker2d", "ant")
"""The tasks that rivals are asked for."""


def main(
    tasks: tuple[str, ...] = TASKS, methods: tuple[str, ...] = ("rhirl", *RIVALS), seconds: float = 10.0
) -> None:
    """Measure tasks and methods for so many CPU seconds each; others keep what was measured before."""
    before = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    simulated = before.get("simulated_steps_per_s", {})
    executed = before.get("executed_steps_per_s", {})
    for task in tasks:
        for method in methods:
            if method == "rhirl":
                pace = simulated[task] = round(planning(task, seconds))
            elif task in VECTORS:
                pace = executed.setdefault(task, {})[method] = round(practising(task, method, seconds))
            else:
                continue
            print(f"{task} {method}: {pace:,} steps/s", flush=True)
    speeds = {"simulated_steps_per_s": simulated, "executed_steps_per_s": executed}
    TARGET.write_text(json.dumps({**speeds, **hardware(), **surroundings()}, indent=1) + "\n")


def practising(name: str, method: str, seconds: float) -> float:
    """Let a rival act and learn, once it has explored; the first two iterations of learning compile."""
    task, how = get_task(name), get_method(method)
    config = choose(how.config, how.presets(task), name)
    demos = find_demos(name, 0.0, None, controls=how.needs_controls)
    imitator = RIVALS[method](partial(make_system, name, 0.0), demos, config)
    while imitator.exploring:
        imitator.step()
    for _ in range(2):
        jax.block_until_ready(imitator.step())
    before, began = imitator.steps, time.process_time()
    while time.process_time() - began < seconds:
        jax.block_until_ready(imitator.step())
    return (imitator.steps - before) / (time.process_time() - began)


def planning(name: str, seconds: float) -> float:
    """Take control steps of RHIRL; the first two compile."""
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
