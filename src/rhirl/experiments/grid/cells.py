"""One cell of a grid: one run, from nothing to its evaluations, however often it is killed on the way.

A cell's state is read from its run directory alone, so whoever comes next goes on where the last one stopped:

    nothing there                          → train
    checkpoints/ there                     → go on from the newest usable one, bit for bit
    no checkpoints/ any more               → trained; evaluate at the noise levels that are missing
    every evaluation there                 → done

Under other noise than it was learned under, a rival's cost first gets a new policy (`reoptimise`), in a run of its
own inside the first one, to which the same rules apply.

While it works, `progress.json` says how far it is; a failure leaves `failure.json`; in the end both are gone and
`timing.json` says what the cell took. One process at a time works in a directory: the others wait for its lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rhirl.experiments.evaluate import evaluate_run
from rhirl.experiments.grid.progress import STAGES, STARTING, Watch
from rhirl.experiments.methods import get_method
from rhirl.experiments.plan import plan_run
from rhirl.experiments.reoptimise import reoptimise
from rhirl.experiments.run import RunConfig, RunDirectory, RunError
from rhirl.experiments.train import Progress, train
from rhirl.machine import hardware

LOCK_PATIENCE = 60.0
"""Seconds to wait for a worker that holds the directory: one that was just killed lets go within moments."""


@dataclass(frozen=True)
class Cell:
    """What one run of a grid is asked to do."""

    task: str
    method: str
    noise: float = 0.0
    seed: int = 0
    preset: str = "default"
    variant: str = ""
    """Name of the changed settings, which becomes part of the folder's."""
    settings: tuple[str, ...] = ()
    """Changed settings, as after `rhirl train --set`."""
    demonstrations: int | None = None
    """Learn from the first so many demonstrations only."""
    episodes: int = 50
    """Evaluation episodes."""
    levels: tuple[float, ...] = ()
    """Noise levels to evaluate at; by default the one learned at."""
    evaluations: int = RunConfig.evaluations
    """How often the run is scored while it learns."""

    @property
    def label(self) -> str:
        """Method, preset and variant in one word: `rhirl`, `rhirl-paper`, `rhirl-K5`."""
        preset = "" if self.preset == "default" else self.preset
        return "-".join(part for part in (self.method, preset, self.variant) if part)

    @property
    def folder(self) -> Path:
        """Where the run lies under the results."""
        return Path(self.task) / self.label / f"noise{self.noise:g}" / f"seed{self.seed}"

    def __str__(self) -> str:
        return f"{self.task} {self.label} σ={self.noise:g} seed {self.seed}"

    def plan(self) -> RunConfig:
        """Lay down the run's whole configuration; every mistake shows here, before anything starts."""
        return plan_run(
            self.task,
            self.method,
            self.noise,
            self.seed,
            self.preset,
            episodes=self.demonstrations,
            overrides=self.settings,
            evaluations=self.evaluations,
        )

    def missing_levels(self, run: RunDirectory) -> list[float]:
        """List the noise levels at which the run is not evaluated yet."""
        return [level for level in self.levels or (self.noise,) if not self._evaluated(run, level)]

    def is_done(self, root: Path) -> bool:
        """Whether nothing is left to do."""
        run = RunDirectory(root / self.folder)
        return run.exists() and not run.checkpoints.exists() and not self.missing_levels(run)

    def _evaluated(self, run: RunDirectory, level: float) -> bool:
        anew = "-reoptimised" if needs_new_policy(self.method, self.noise, level) else ""
        path = run.path / "eval" / f"noise{level:g}-seed{self.seed}{anew}.json"
        return path.exists() and json.loads(path.read_text())["episodes"] >= self.episodes


def needs_new_policy(method: str, learned_at: float, level: float) -> bool:
    """Whether acting under this noise takes a new policy: RHIRL plans anyway, and policies without cost stay."""
    return level != learned_at and method != "rhirl" and get_method(method).has_cost


def run_cell(cell: Cell, root: Path, *, lock_patience: float = LOCK_PATIENCE) -> None:
    """Do what is left to do of a cell."""
    run = RunDirectory(root / cell.folder)
    with _claimed(run, lock_patience):
        config = cell.plan()
        if run.exists():
            refuse_other_settings(run, config)
        watch = Watch(run.path)
        watch(STARTING, 0, 1)
        if not run.exists() or run.checkpoints.exists():
            train(run, config, resume=run.exists(), show=_shown(watch, "training"))
            _retire(run.checkpoints)
        for level in cell.missing_levels(run):
            _evaluate(cell, run, level, watch)
        if "training" in watch.spent:  # otherwise somebody else trained it, and only they know how long that took
            seconds = {f"{stage}_s": round(watch.spent.get(stage, 0.0), 3) for stage in STAGES}
            run.write_json("timing.json", {**seconds, **hardware()})
        for leftover in ("progress.json", "failure.json"):
            (run.path / leftover).unlink(missing_ok=True)


def refuse_other_settings(run: RunDirectory, config: RunConfig) -> None:
    """Raise where a directory holds a run that was asked to do something else.

    Settings that the older run did not know of are taken to be as they were then; how often it was scored while it
    learned changes nothing that it learned.
    """
    before, now = _flat(asdict(run.config())), _flat(asdict(config))
    names = [name for name in before if before[name] != now.get(name) and name != "evaluations"]
    changed = [f"{name} was {before[name]!r}, now {now.get(name)!r}" for name in names]
    if changed:
        raise RunError(f"{run.path} holds a run with other settings ({'; '.join(changed)}): move it away first")


def _evaluate(cell: Cell, run: RunDirectory, level: float, watch: Watch) -> None:
    """Evaluate a trained run at one noise level, with a new policy where that takes one."""
    policy = None
    if needs_new_policy(cell.method, cell.noise, level):
        policy = reoptimise(run, level, show=_shown(watch, f"optimising at σ={level:g}"))
        _retire(policy.checkpoints)
    stage = f"evaluating at σ={level:g}"
    watch(stage, 0, cell.episodes)

    def count(index: int, _: float) -> None:
        watch(stage, index + 1, cell.episodes)

    evaluate_run(run, episodes=cell.episodes, noise=level, seed=cell.seed, progress=count, policy=policy)


def _shown(watch: Watch, stage: str) -> Callable[[Progress], None]:
    return lambda seen: watch(stage, seen.iteration, seen.iterations)


def _retire(checkpoints: Path) -> None:
    """Take the checkpoints away at one stroke: their absence is what says that training has ended."""
    doomed = checkpoints.with_name("checkpoints.retired")
    shutil.rmtree(doomed, ignore_errors=True)
    if checkpoints.exists():
        checkpoints.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


@contextmanager
def _claimed(run: RunDirectory, patience: float) -> Iterator[None]:
    """Hold the directory's lock; the system frees it when its holder dies, however it dies."""
    run.path.mkdir(parents=True, exist_ok=True)
    folder = os.open(run.path, os.O_RDONLY)
    deadline = time.monotonic() + patience
    try:
        while not _lock(folder):
            if time.monotonic() > deadline:
                raise RunError(f"{run.path}: another process has been working here for {patience:.0f} s")
            time.sleep(0.1)
        yield
    finally:
        os.close(folder)


def _lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems lock no directories; a grid still gives each cell to one worker
        return True
    return True


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {prefix: list(values) if isinstance(values, tuple) else values}
    return {
        name: value
        for key, inner in values.items()
        for name, value in _flat(inner, f"{prefix}.{key}".lstrip(".")).items()
    }
