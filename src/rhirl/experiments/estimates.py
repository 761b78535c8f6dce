"""How long cells will take: from cells like them that are finished, or from measured times that come along.

`grids/times.json` holds the seconds of a whole cell for tasks and methods, on a stated machine with one core;
benchmarks/cell_times.py measures them. What has neither a finished sibling nor a measurement counts as unknown.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rhirl.experiments.cells import Cell
from rhirl.experiments.grid_specs import BUILT_IN
from rhirl.experiments.progress import Seen
from rhirl.experiments.results import curve
from rhirl.experiments.run import RunDirectory

Kind = tuple[str, str]
"""What cells of like duration share: the task, and method, preset and variant in one word."""


class Estimate(NamedTuple):
    """How long some cells take, one after the other."""

    seconds: float
    unknown: int
    """Cells of whose duration nothing is known."""


def measured_times() -> dict[str, Any]:
    """Read the measurements that come with the package: `cells` by task and label, and the `machine`."""
    path = BUILT_IN / "times.json"
    return json.loads(path.read_text()) if path.exists() else {"cells": {}}


def durations(cells: Iterable[Cell], root: Path) -> dict[Kind, float]:
    """Return seconds by kind of cell: the mean of those finished, else what was measured."""
    finished: defaultdict[Kind, list[float]] = defaultdict(list)
    kinds = set()
    for cell in cells:
        kinds.add((cell.task, cell.label))
        took = _took(RunDirectory(root / cell.folder))
        if took:
            finished[cell.task, cell.label].append(took)
    measured = measured_times()["cells"]
    found = {kind: measured.get(kind[0], {}).get(kind[1]) for kind in kinds}
    found |= {kind: sum(seconds) / len(seconds) for kind, seconds in finished.items()}
    return {kind: seconds for kind, seconds in found.items() if seconds is not None}


def _took(run: RunDirectory) -> float:
    """Return what a finished run took; one made outside a grid left only the seconds it learned for."""
    path = run.path / "timing.json"
    if path.exists():
        took = json.loads(path.read_text())
        return took["training_s"] + took["evaluation_s"]
    if run.checkpoints.exists() or not run.exists():
        return 0.0
    return float(curve(run)["seconds"].max(initial=0.0))


def estimate(cells: Sequence[Cell], known: dict[Kind, float]) -> Estimate:
    """Add up what these cells take from nothing to done."""
    kinds = [(cell.task, cell.label) for cell in cells]
    return Estimate(sum(known.get(kind, 0.0) for kind in kinds), sum(kind not in known for kind in kinds))


def remaining(seen: Seen, whole: float | None) -> float | None:
    """Estimate what a cell in work still takes, from its own pace once it has one."""
    spent = seen.seconds.get("training", 0.0)
    if seen.stage == "training" and seen.done:
        return spent * (seen.total - seen.done) / seen.done
    return None if whole is None else max(0.0, whole - sum(seen.seconds.values()))


def in_words(seconds: float) -> str:
    """Say a duration: 45 s, 12 min, 3 h 20 min, 2 d 4 h."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
