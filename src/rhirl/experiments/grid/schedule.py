"""Do a grid of runs: what is done is skipped, what was killed goes on, what fails is tried again and then told.

All that is kept of a grid are its run directories, so killing the driver at any moment loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rhirl.experiments.grid.cells import Cell, refuse_other_settings
from rhirl.experiments.grid.engines import Ended, Engine
from rhirl.experiments.run import RunConfig, RunDirectory, RunError

RETRIES, DEATHS = 2, 10
"""How often a cell that fails is tried again, and how often one whose worker dies goes on."""


class Outcome(NamedTuple):
    """What became of a grid."""

    skipped: tuple[Cell, ...]
    finished: tuple[Cell, ...]
    failed: tuple[Ended, ...]


def check(cells: Sequence[Cell], root: Path) -> list[RunError]:
    """Find every mistake before anything starts: raise at unknown words, return what other runs are in the way."""
    plans: dict[Cell, RunConfig] = {}
    in_the_way: list[RunError] = []
    for cell in cells:
        kind, run = replace(cell, seed=0), RunDirectory(root / cell.folder)
        if kind not in plans:  # one for all seeds: looking at CarRacing's demonstrations takes a moment
            plans[kind] = kind.plan()
        try:
            if run.exists():
                refuse_other_settings(run, replace(plans[kind], seed=cell.seed))
        except RunError as error:
            in_the_way.append(error)
    return in_the_way


def run_grid(
    cells: Sequence[Cell],
    root: Path,
    engine: Engine,
    *,
    retries: int = RETRIES,
    tell: Callable[[Ended, bool], None] = lambda ended, again: None,
) -> Outcome:
    """Do every cell that is not done.

    Args:
        cells: The grid, most wanted first.
        root: Where the run directories lie.
        engine: What does the work; it is closed in the end.
        retries: How often a cell that failed is tried again.
        tell: Called with every end of an attempt, and whether there will be another one.
    """
    skipped = tuple(cell for cell in cells if cell.is_done(root))
    unfinished = set(cells) - set(skipped)
    finished: list[Cell] = []
    failed: list[Ended] = []
    failures: Counter[Cell] = Counter()
    deaths: Counter[Cell] = Counter()
    try:
        for cell in cells:
            if cell in unfinished:
                engine.submit(cell)
        while unfinished:
            for ended in engine.wait():
                (deaths if ended.died else failures)[ended.cell] += ended.error is not None
                again = ended.error is not None and (
                    deaths[ended.cell] <= DEATHS if ended.died else failures[ended.cell] <= retries
                )
                tell(ended, again)
                if again:
                    engine.submit(ended.cell)
                    continue
                unfinished.remove(ended.cell)
                if ended.error is None:
                    finished.append(ended.cell)
                else:
                    failed.append(ended)
    finally:
        engine.close()
    return Outcome(skipped, tuple(finished), tuple(failed))
