"""How well the simulator tells what a demonstrator did: inferred controls against those that were executed.

    python benchmarks/explain.py hopper walker2d ant27 lunar_lander --demonstrations 1

Controls are compared as they are, also where they do nothing: a lander's engines are silent below their thresholds,
so an error there need not matter. The residual says whether the transition is met.
Results: results/bench/explain.json.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from rhirl.experiments.plan import find_demos
from rhirl.learning import explain
from rhirl.machine import surroundings
from rhirl.proposals.apprentice import TRUSTED
from rhirl.simulators import InvertibleSimulator
from rhirl.tasks import get_task

RESULTS = Path(__file__).parent.parent / "results/bench/explain.json"
LEVELS = (0.0, 0.2, 0.5)


def main(tasks: tyro.conf.Positional[tuple[str, ...]], /, demonstrations: int = 1) -> None:
    """Explain some demonstrations at every noise level."""
    rows = [measure(task, noise, demonstrations) for task in tasks for noise in LEVELS]
    text = json.dumps({"rows": rows, **surroundings()}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


def measure(name: str, noise: float, demonstrations: int) -> dict[str, Any]:
    """Explain whole demonstrations, each from its beginning; the error is the largest of the m controls."""
    task = get_task(name)
    demos, simulator = find_demos(name, noise, episodes=demonstrations, controls=True), task.simulator()
    assert demos.controls is not None
    assert isinstance(simulator, InvertibleSimulator)
    began = time.process_time()
    found = explain(simulator, replace(demos, controls=None))
    cpu, told = time.process_time() - began, np.isfinite(found.residuals)
    residuals = found.residuals[told]
    errors = np.abs(found.controls - np.clip(demos.controls, -1, 1)).max(axis=-1)[told]
    trusted = residuals < TRUSTED
    return {
        "task": name,
        "noise": noise,
        "transitions": int(told.sum()),
        "cpu_ms": round(1e3 * cpu / told.sum(), 2),
        "trusted": round(float(trusted.mean()), 3),
        "error_quartiles": np.quantile(errors, [0.25, 0.5, 0.75]).round(5).tolist(),
        "error_quartiles_of_trusted": np.quantile(errors[trusted], [0.25, 0.5, 0.75]).round(5).tolist(),
    }


if __name__ == "__main__":
    tyro.cli(main)
