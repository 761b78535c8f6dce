"""Read the raw results back: one evaluation per run and noise level, as `results/runs` holds them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.experiments.grid.cells import needs_new_policy
from rhirl.experiments.run import RunDirectory
from rhirl.tasks import TASKS

OURS, REHEARSED = "rhirl", "-rehearsed"
"""RHIRL plans anew under other noise; where its proposal rehearsed there first, that is a row of its own."""
SCORED = "-scored"
"""What follows the label of runs that were scored in the end only, where another was scored on the way."""


@dataclass(frozen=True)
class Result:
    """A run's score at one noise level, in the episodes whose seeds belong to the run's."""

    task: str
    label: str
    """Method, preset and variant, as the folder is called: `rhirl`, `rhirl-paper`."""
    noise: float
    """Noise acted under."""
    learned_at: float
    """Noise learned under."""
    seed: int
    return_mean: float
    expert_return: float
    ratio: float
    """To the expert in the same episodes, under the same noise."""
    score: float
    calm_ratio: float | None
    """To the expert from the same starts but without noise, as the paper's table 2 has it."""


def read_results(root: Path) -> list[Result]:
    """Read every evaluation below a folder of runs, `<task>/<label>/noise<σ>/seed<k>`."""
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such folder of results; say where with --results")
    return [result for run in find_runs(root) for result in _results(run)]


def find_runs(root: Path) -> list[RunDirectory]:
    """List the runs below a folder, in the order of their names."""
    return [RunDirectory(path.parent) for path in sorted(root.glob("*/*/noise*/seed*/config.json"))]


def label(run: RunDirectory) -> str:
    """Method, preset and variant of a run."""
    return run.path.parts[-3]


def _results(run: RunDirectory) -> Iterator[Result]:
    seed = run.path.name.removeprefix("seed")
    found = [json.loads(path.read_text()) for path in sorted(run.path.glob(f"eval/noise*-seed{seed}*.json"))]
    own = [one for one in found if one["seed"] == int(seed)]
    calm = next((one["expert_return"] for one in own if one["noise"] == 0), None)
    method = label(run).partition("-")[0]
    for one in own:
        anew = one.get("reoptimised", False)
        if method != OURS and anew != needs_new_policy(method, one["learned_at_noise"], one["noise"]):
            continue  # a rival's old policy under new noise, which is not what the paper asks
        task = TASKS.get(one["task"])
        yield Result(
            run.path.parts[-4],
            label(run) + (REHEARSED if method == OURS and anew else ""),
            one["noise"],
            one["learned_at_noise"],
            one["run_seed"],
            one["return_mean"],
            one["expert_return"],
            one["ratio"],
            one["score"],
            None if task is None or calm is None else task.ratio(one["return_mean"], calm),
        )


def curve(run: RunDirectory) -> dict[str, NDArray[np.float64]]:
    """Read a run's learning curve: return and score at each evaluation, over steps and over seconds of learning.

    Seconds are Σ Δ(executed steps) / (steps per second), which leaves out evaluating and being interrupted. For a
    method that only looks at demonstrations, and executes nothing, all of them are zero.
    """
    return _columns(run.read_metrics())


def last_point(run: RunDirectory) -> dict[str, NDArray[np.float64]]:
    """Read where a run ended: its evaluation at its own noise, as a curve of one point, or of none."""
    lines, path = run.read_metrics(), run.path / "eval" / f"{run.path.parent.name}-{run.path.name}.json"
    if lines and path.exists():
        found = json.loads(path.read_text())
        lines[-1] |= {"eval/return": found["return_mean"], "eval/score": found["score"]}
    return _columns(lines)


def _columns(lines: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[np.float64]]:
    executed = np.array([line["steps/executed"] for line in lines], np.float64)
    pace = np.array([line["time/steps_per_s"] for line in lines], np.float64)
    steps = np.diff(executed, prepend=0.0)
    seconds = np.cumsum(np.divide(steps, pace, out=np.zeros_like(steps), where=pace > 0))
    kept = [i for i, line in enumerate(lines) if "eval/return" in line]
    columns = {
        "executed": executed,
        "simulated": np.array([line.get("steps/simulated", np.nan) for line in lines], np.float64),
        "seconds": seconds,
        "return": np.array([line.get("eval/return", np.nan) for line in lines], np.float64),
        "score": np.array([line.get("eval/score", np.nan) for line in lines], np.float64),
    }
    return {name: values[kept] for name, values in columns.items()}
