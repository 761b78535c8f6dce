"""The paper's tables from raw results: our ratios beside its own, with what a few seeds allow to say about them.

A table has one entry per cell of its grid, such as `grid/built_in/table1.toml`; one that was not run stays empty.

Table 1: ratio of the return to the expert's under the same noise, which was also learned under.
Table 2: learned without noise, acting under noise; ratio to the expert without noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.experiments.grid import Cell, read_spec
from rhirl.experiments.grid.results import OURS, REHEARSED, Result, read_results
from rhirl.experiments.tables.paper import transferred_ratio
from rhirl.experiments.tables.statistics import interval, pooled_iqm, probability_of_improvement
from rhirl.tasks import get_task

TITLES = {
    1: "Ratio to the expert, learned and acting at noise σ",
    2: "Ratio to the noise-free expert, learned without noise and acting at noise σ",
}
Key = tuple[str, str, float]
"""Task, method (with preset and variant), noise acted under."""
Ratios = NDArray[np.float64]
NOTHING: Ratios = np.zeros(0)
NAMES = {
    "rhirl": "RHIRL",
    "firl": "f-IRL",
    "airl": "AIRL",
    "gail": "GAIL",
    "bc": "BC",
    "rhirl-paper": "RHIRL, `paper` preset",
    "rhirl-rehearsed": "RHIRL, rehearsed",
}


@dataclass(frozen=True)
class Entry:
    """One task, method and noise level, over seeds; every number is None where nothing was run."""

    task: str
    method: str
    noise: float
    seeds: int
    ratio: float | None
    """Mean over seeds."""
    deviation: float | None
    """Standard deviation over seeds (divided by their number)."""
    iqm: float | None
    interval: tuple[float, float] | None
    """95 % bootstrap interval of the interquartile mean."""
    return_mean: float | None
    expert_return: float | None
    paper_ratio: float | None


@dataclass(frozen=True)
class Summary:
    """A method at a noise level over all tasks that were run, and how it stands beside ours."""

    method: str
    noise: float
    tasks: int
    seeds: int
    iqm: float
    interval: tuple[float, float]
    improvement: float | None
    """Probability that a seed of RHIRL beats one of this method on a task both were run on."""
    improvement_interval: tuple[float, float] | None


@dataclass(frozen=True)
class Table:
    """One of the paper's tables."""

    name: str
    title: str
    cells: tuple[Entry, ...]
    summaries: tuple[Summary, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values; what was not run is null."""
        return {
            "table": self.name,
            "title": self.title,
            "cells": [asdict(cell) for cell in self.cells],
            "summaries": [asdict(summary) for summary in self.summaries],
        }


def make_table(number: int, root: Path) -> Table:
    """Build one of the paper's tables from the runs below a folder."""
    if number not in TITLES:
        raise ValueError(f"no table {number}; there are {', '.join(map(str, TITLES))}")
    spec = read_spec(f"table{number}")
    return tabulate(
        spec.cells, read_results(root), name=f"Table {number}", title=TITLES[number], transferred=number == 2
    )


def tabulate(
    cells: Sequence[Cell], results: Sequence[Result], *, name: str, title: str, transferred: bool
) -> Table:
    """Lay the results out for the cells of a grid.

    Args:
        cells: The grid; it decides which entries there are.
        results: All results there are.
        name: What the table is called.
        title: What it shows.
        transferred: Whether costs act under other noise than they were learned under, as in table 2.
    """
    learned = {(cell.task, cell.label, cell.noise) for cell in cells}
    keys = _keys(cells, {(r.task, r.label, r.noise) for r in results if transferred and _rehearsed(r, learned)})
    values: defaultdict[Key, list[float]] = defaultdict(list)
    found: defaultdict[Key, list[Result]] = defaultdict(list)
    for result in results:
        value = result.calm_ratio if transferred else result.ratio
        belongs = (result.task, result.label.removesuffix(REHEARSED), result.learned_at) in learned
        if belongs and value is not None and (transferred or result.noise == result.learned_at):
            key = result.task, result.label, result.noise
            values[key].append(value)
            found[key].append(result)
    ratios = {key: np.array(values[key], np.float64) for key in keys}
    entries = tuple(_entry(key, ratios[key], found[key], transferred) for key in keys)
    return Table(name, title, entries, tuple(_summaries(ratios)))


def _rehearsed(result: Result, learned: Set[Key]) -> bool:
    own = result.label.removesuffix(REHEARSED)
    return own != result.label and (result.task, own, result.learned_at) in learned


def _keys(cells: Sequence[Cell], rehearsed: Set[Key]) -> list[Key]:
    """List (task, method, σ): by task as the paper does, then method, then noise; who rehearsed behind its own."""
    keys = {(cell.task, cell.label, level) for cell in cells for level in cell.levels or (cell.noise,)}
    tasks, labels = (list(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("task", "label"))

    def place(key: Key) -> tuple[int, int, str, float]:
        task, label, noise = key
        return tasks.index(task), labels.index(label.removesuffix(REHEARSED)), label, noise

    return sorted(keys | rehearsed, key=place)


def _entry(key: Key, ratios: Ratios, results: Sequence[Result], transferred: bool) -> Entry:
    task, label, noise = key
    method = label.partition("-")[0]
    paper = transferred_ratio(task, method, noise) if transferred else get_task(task).paper_ratio(method, noise)
    if not len(ratios):
        return Entry(*key, 0, None, None, None, None, None, None, paper)
    return Entry(
        *key,
        len(ratios),
        float(ratios.mean()),
        float(ratios.std()),
        float(pooled_iqm([ratios])),
        interval(pooled_iqm, [ratios]),
        float(np.mean([result.return_mean for result in results])),
        float(np.mean([result.expert_return for result in results])),
        paper,
    )


def _summaries(ratios: Mapping[Key, Ratios]) -> Iterator[Summary]:
    """Summarise each method at each noise level, over the tasks it was run on."""
    for noise in sorted({noise for _, _, noise in ratios}):
        for label in dict.fromkeys(label for _, label, _ in ratios):
            own = {
                task: r
                for (task, method, level), r in ratios.items()
                if (method, level) == (label, noise) and len(r)
            }
            if own:
                yield _summary(label, noise, own, {task: ratios.get((task, OURS, noise), NOTHING) for task in own})


def _summary(label: str, noise: float, own: Mapping[str, Ratios], ours: Mapping[str, Ratios]) -> Summary:
    strata = list(own.values())
    both = [] if label == OURS else [task for task in own if len(ours[task])]
    pair = [ours[task] for task in both], [own[task] for task in both]
    return Summary(
        label,
        noise,
        len(strata),
        sum(map(len, strata)),
        float(pooled_iqm(strata)),
        interval(pooled_iqm, strata),
        float(probability_of_improvement(*pair)) if both else None,
        interval(probability_of_improvement, *pair) if both else None,
    )
