"""How long cells will take: from cells like them that are finished, else from how fast a core does what they do.

`built_in/speeds.json`: the steps a core simulates in a second while RHIRL learns, and those it executes while a
rival learns; benchmarks/model_speeds.py measures both. What RHIRL does is simulating, so a cell takes

    (iterations · B · M · M_s · K  +  episodes · T / hold · M · M_s · K of the acting planner) / speed

at most: episodes may end early. A look beyond the horizon adds K + L steps of the exact model to each plan. Amid
noise there is none, but another planner acts, perhaps on the exact model, danger is learned once, and the proposal
may rehearse. A rival executes as many steps as its configuration says, and as many again for every policy that is
learned anew; behaviour cloning executes none, and is unknown until one of its kind is finished.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rhirl.experiments.grid.cells import Cell, needs_new_policy
from rhirl.experiments.grid.progress import Seen
from rhirl.experiments.grid.results import curve
from rhirl.experiments.grid.specs import BUILT_IN
from rhirl.experiments.methods import get_method
from rhirl.experiments.presets import choose, configure
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.train import EVALUATION_EPISODES
from rhirl.learning.danger import SPAN, SYSTEMS
from rhirl.proposals.rehearsal import STEPS
from rhirl.tasks import get_task

LED = 16
"""Steps simulated for a plan in the time in which a policy is led through one of the exact model."""
EXACT = 6
"""Steps simulated on a planner's cheaper model in the time in which one is on the exact model: Ant's."""
Kind = tuple[str, str]
"""What cells of like duration share: the task, and method, preset and variant in one word."""


class Estimate(NamedTuple):
    """How long some cells take, one after the other."""

    seconds: float
    unknown: int
    """Cells of whose duration nothing is known."""


def durations(cells: Iterable[Cell], root: Path) -> dict[Kind, float]:
    """Return seconds by kind of cell: the mean of those finished, else what its steps would take."""
    finished: defaultdict[Kind, list[float]] = defaultdict(list)
    example: dict[Kind, Cell] = {}
    for cell in cells:
        example[cell.task, cell.label] = cell
        run = RunDirectory(root / cell.folder)
        seconds = took(run)
        if seconds is not None and not on_accelerator(run):
            finished[cell.task, cell.label].append(seconds)
    speeds = json.loads((BUILT_IN / "speeds.json").read_text())
    found = {kind: _seconds(cell, speeds) for kind, cell in example.items()}
    found |= {kind: sum(known) / len(known) for kind, known in finished.items()}
    return {kind: seconds for kind, seconds in found.items() if seconds is not None}


def _seconds(cell: Cell, speeds: Mapping[str, Any]) -> float | None:
    if cell.method == "rhirl":
        speed, rule = speeds["simulated_steps_per_s"].get(cell.task), planning_seconds
    else:
        speed, rule = speeds["executed_steps_per_s"].get(cell.task, {}).get(cell.method), practising_seconds
    return None if speed is None else rule(cell, speed)


def practising_seconds(cell: Cell, speed: float) -> float:
    """Estimate a rival's cell from the steps it executes at a given speed."""
    method, task = get_method(cell.method), get_task(cell.task)
    config = choose(method.config, method.presets(task), task.name, cell.preset, cell.settings)
    anew = sum(needs_new_policy(cell.method, cell.noise, level) for level in cell.levels)
    return config.steps * (1 + anew) / speed


def planning_seconds(cell: Cell, speed: float) -> float:
    """Estimate an RHIRL cell from the steps it simulates at a given speed."""
    task = get_task(cell.task)
    config = configure(task, cell.preset, cell.settings)
    dear = EXACT if config.exact else 1
    as_acting = config.learns_as_it_acts(cell.noise)
    learner = config.minding if as_acting else config.planner
    learning = config.iterations * config.parallel * learner.M * learner.K * (dear if as_acting else 1)
    episodes = cell.evaluations * EVALUATION_EPISODES + cell.episodes * max(1, len(cell.levels))
    plans = episodes * task.T // task.hold
    wary = cell.noise > 0 and config.minds_danger
    planner = config.minding if wary else config.acting
    led = SYSTEMS * SPAN * config.beyond if wary else plans * (planner.K + config.beyond)
    if cell.noise > 0:
        led += config.rehearsals * STEPS
    planned = plans * planner.M * planner.K * (dear if wary else 1)
    simulated = config.M_s * (learning + planned)
    return (simulated + (LED * led if config.beyond else 0)) / speed


def took(run: RunDirectory) -> float | None:
    """Return what a finished run took; one made outside a grid left only the seconds it learned for."""
    path = run.path / "timing.json"
    if path.exists():
        timing = json.loads(path.read_text())
        return timing["training_s"] + timing["evaluation_s"]
    if run.checkpoints.exists() or not run.exists():
        return None
    return float(curve(run)["seconds"].max(initial=0.0)) or None


def on_accelerator(run: RunDirectory) -> bool:
    """Whether a run learned on a GPU, whose seconds say nothing about a core's."""
    path = run.path / "meta.json"
    return path.exists() and "cpu" not in json.loads(path.read_text()).get("device", "cpu").lower()


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
