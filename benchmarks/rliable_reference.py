"""Let rliable compute what `rhirl.experiments.tables.statistics` computes, for the test that compares the two.

rliable 1.2 needs arch 7, which does not import beside pandas 3; it therefore gets an environment of its own:

    python -m venv .rliable && .rliable/bin/pip install "rliable==1.2.0" "pandas<3"
    .rliable/bin/python benchmarks/rliable_reference.py     writes tests/rliable_reference.json

This script imports nothing of rhirl, so that it runs there.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rliable import library, metrics

TARGET = Path(__file__).parent.parent / "tests/rliable_reference.json"
RESAMPLES = 20_000
CASES = {"close": (5, 7, 3, 0.1), "apart": (10, 10, 5, 0.6), "one task": (3, 4, 1, 0.2), "ties": (6, 6, 2, 0.0)}
"""Seeds of X, seeds of Y, tasks, and how much better X is."""


def main() -> None:
    """Draw scores, ask rliable, write inputs and outputs."""
    rng = np.random.default_rng(2022)
    found = [case(name, rng, *sizes) for name, sizes in CASES.items()]
    versions = {name: importlib.metadata.version(name) for name in ("rliable", "arch", "numpy", "scipy")}
    TARGET.write_text(json.dumps({"versions": versions, "resamples": RESAMPLES, "cases": found}, indent=1) + "\n")


def case(name: str, rng: np.random.Generator, n: int, m: int, tasks: int, gap: float) -> dict[str, object]:
    """One pair of methods: scores (seeds, tasks) rounded so that ties happen."""
    digits = 1 if name == "ties" else 3
    x, y = rng.normal(0.7 + gap, 0.2, (n, tasks)).round(digits), rng.normal(0.7, 0.3, (m, tasks)).round(digits)
    iqm, iqm_interval = library.get_interval_estimates({"x": x}, _iqm, reps=RESAMPLES)
    better, better_interval = library.get_interval_estimates(
        {"x,y": (x, y)}, metrics.probability_of_improvement, reps=RESAMPLES // 10
    )
    return {
        "name": name,
        "x": x.tolist(),
        "y": y.tolist(),
        "iqm": float(iqm["x"][0]),
        "iqm_interval": iqm_interval["x"][:, 0].tolist(),
        "improvement": float(better["x,y"]),
        "improvement_interval": better_interval["x,y"][:, 0].tolist(),
    }


def _iqm(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([metrics.aggregate_iqm(scores)])


if __name__ == "__main__":
    main()
