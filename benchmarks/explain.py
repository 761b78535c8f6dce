"""How well the simulator tells what a demonstrator did: inferred controls against those that were executed.

    python benchmarks/explain.py hopper walker2d ant27 lunar_lander --transitions 200

Controls are compared as they are, also where they do nothing: a lander's engines are silent below their thresholds,
so an error there need not matter. The residual says whether the transition is met.
Results: results/bench/explain.json.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from rhirl.experiments.plan import find_demos
from rhirl.experiments.proposal import TRUSTED
from rhirl.experiments.run import surroundings
from rhirl.learning.explain import explain_step, scale_of
from rhirl.simulators import InvertibleSimulator
from rhirl.tasks import get_task

RESULTS = Path(__file__).parent.parent / "results/bench/explain.json"
LEVELS = (0.0, 0.2, 0.5)


def main(tasks: tyro.conf.Positional[tuple[str, ...]], /, transitions: int = 300) -> None:
    """Explain random transitions of ten demonstrations at every noise level."""
    rows = [measure(task, noise, transitions) for task in tasks for noise in LEVELS]
    text = json.dumps({"rows": rows, **surroundings()}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


def measure(name: str, noise: float, transitions: int) -> dict[str, Any]:
    """Explain some transitions; the error is the largest of the m controls."""
    task = get_task(name)
    demos, simulator = find_demos(name, noise, episodes=10, controls=True), task.simulator()
    assert demos.controls is not None
    assert isinstance(simulator, InvertibleSimulator)
    rng = np.random.default_rng(0)
    scale = scale_of(demos)
    errors, residuals, began = [], [], time.process_time()
    for i in rng.integers(len(demos), size=transitions):
        t = int(rng.integers(demos.lengths[i]))
        x, x_next = demos.observations[i, t : t + 2]
        v, residual = explain_step(simulator, x, x_next, scale)
        errors.append(np.abs(v - np.clip(demos.controls[i, t], -1, 1)).max())
        residuals.append(residual)
    trusted = np.array(residuals) < TRUSTED
    return {
        "task": name,
        "noise": noise,
        "transitions": transitions,
        "cpu_ms": round(1e3 * (time.process_time() - began) / transitions, 2),
        "trusted": round(float(trusted.mean()), 3),
        "error_quartiles": np.quantile(errors, [0.25, 0.5, 0.75]).round(5).tolist(),
        "error_quartiles_of_trusted": np.quantile(np.array(errors)[trusted], [0.25, 0.5, 0.75]).round(5).tolist(),
    }


if __name__ == "__main__":
    tyro.cli(main)
