"""How soon does RHIRL reach the expert, and does it stay there? Of the runs that were scored on the way.

    python benchmarks/stays.py

Reads `results/runs/TASK/rhirl-scored` and prints a row a run: where the score, which is 1 for the expert and 0 for
a random agent, is 0.9 for the first time, and the least mean return of the last third of learning over the best of
all. Seconds are those of learning, without what comes before it (explaining the demonstrations), without scoring.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

from rhirl.experiments.grid.results import SCORED, curve, find_runs, label

RUNS = Path(__file__).parent.parent / "results/runs"
REACHED = 0.9


def constancy(executed: NDArray[np.float64], returns: NDArray[np.float64]) -> float:
    """Return the least return of the last third of learning, over the best of all."""
    return float(returns[executed > executed[-1] * 2 / 3].min() / returns.max())


def main(runs: tyro.conf.Positional[Path] = RUNS, /) -> None:
    """Print a table of all of them."""
    print(f"| run | score {REACHED} after: executed | simulated | seconds | score there | last third over best |")
    print("|---|---|---|---|---|---|")
    for run in find_runs(runs):
        if not label(run).endswith(SCORED):
            continue
        seen = curve(run)
        reached = np.flatnonzero(seen["score"] >= REACHED)[:1]
        cells = [f"{seen[axis][i]:,.0f}" for i in reached for axis in ("executed", "simulated", "seconds")]
        cells += [f"{seen['score'][i]:.2f}" for i in reached]
        stays = constancy(seen["executed"], seen["return"])
        print(f"| {run.path.relative_to(runs)} | {' | '.join(cells or 4 * ['–'])} | {stays:.2f} |")


if __name__ == "__main__":
    tyro.cli(main)
