"""The paper's figures, and those of what it only claims, redrawn from raw results.

curves         every method's score while it learns, over executed steps, simulated steps and seconds
horizon        the receding horizon K on Hopper, over executed and over simulated steps
stochastic     what several rollouts of each control sequence (M_s) buy under process noise
error-growth   how the error of the state distribution grows with the length T
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rhirl.experiments.grid import Cell, read_spec
from rhirl.experiments.grid.results import SCORED, curve, find_runs, label, last_point, read_results
from rhirl.experiments.tables import NAMES, interval, pooled_iqm
from rhirl.report.curves import COLORS, Curve, empty, learning_curves
from rhirl.report.figures import EXPERT, MUTED, STYLE

Curves = dict[str, dict[str, list[Curve]]]


def curves(root: Path) -> Figure:
    """Learning curves without noise, of the methods and tasks that were run."""
    cells = read_spec("learning-curves").cells
    return learning_curves(grid_curves(cells, root), _names(cells))


def horizon(root: Path) -> Figure:
    """Hopper's return for K = 5, 20 and 100."""
    cells = read_spec("ablation-horizon").cells
    horizons = {cell.label: int(cell.plan().hyper["planner"]["K"]) for cell in cells}
    names = {label: f"K = {horizons[label]}" for label in sorted(horizons, key=horizons.__getitem__)}
    return learning_curves(grid_curves(cells, root), names, ("executed", "simulated"), "return")


def stochastic(root: Path) -> Figure:
    """Score over M_s on Pendulum with process noise: every seed, and the interquartile mean with its interval."""
    cells = read_spec("stochastic").cells
    found = read_results(root)
    scores: dict[int, list[float]] = {}
    for cell in dict.fromkeys((cell.task, cell.label, cell.variant) for cell in cells):
        own = [r.score for r in found if (r.task, r.label) == cell[:2]]
        if own:
            scores[int(cell[2].removeprefix("Ms"))] = own
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.6), layout="constrained")
        axes = figure.subplots()
        if not scores:
            empty(axes)
            return figure
        for i, own in enumerate(scores[M_s] for M_s in sorted(scores)):
            values = [np.array(own)]
            low, high = interval(pooled_iqm, values)
            axes.vlines(i, low, high, color=COLORS[0], linewidth=3, alpha=0.35)
            axes.plot([i] * len(own), own, "o", color=MUTED, markersize=4)
            axes.plot(i, float(pooled_iqm(values)), "D", color=COLORS[0], markersize=7)
        axes.set_xticks(range(len(scores)), [f"{M_s}\n({len(scores[M_s])} seeds)" for M_s in sorted(scores)])
        axes.axhline(1.0, color=EXPERT, linewidth=1.2)
        axes.set(xlabel="rollouts of each control sequence, M_s", ylabel="score (1 is the expert)")
    return figure


def error_growth(root: Path) -> Figure:
    """Error summed over the first T steps, over T, with the exponent it grows with."""
    path = root.parent / "error_growth" / "error_growth.json"
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.4, 3.6), layout="constrained")
        at_once, summed = figure.subplots(1, 2)
        if not path.exists():
            empty(at_once)
            empty(summed)
            return figure
        measured = json.loads(path.read_text())
        for color, (name, found) in zip(COLORS, measured["methods"].items(), strict=False):
            _growth(at_once, summed, color, NAMES.get(name, name), found)
        floor = measured["floor"]
        at_once.plot(range(1, len(floor) + 1), floor, color=MUTED, linestyle=":", label="expert, by sampling")
        at_once.set(xlabel="time t", ylabel="distance of x_t to the expert's, W(t)", ylim=(0, None))
        at_once.legend(frameon=False)
        summed.set(xlabel="length T", ylabel="Σ W(t) − W₀(t) over t ≤ T", xscale="log", yscale="log")
        summed.legend(frameon=False)
    return figure


def _growth(at_once: Axes, summed: Axes, color: str, name: str, found: dict[str, Any]) -> None:
    t = range(1, len(found["error"]) + 1)
    low, high = found["exponent_interval"]
    at_once.plot(t, found["error"], color=color, linewidth=1.4, label=name)
    text = f"{name}: grows as $T^{{{found['exponent']:.2f}}}$ [{low:.2f}, {high:.2f}]"
    summed.plot(t, found["total"], color=color, label=text)


FIGURES: dict[str, Callable[[Path], Figure]] = {
    "curves": curves,
    "horizon": horizon,
    "stochastic": stochastic,
    "error-growth": error_growth,
}


def grid_curves(cells: Iterable[Cell], root: Path) -> Curves:
    """Read the curves of a grid's runs, by task and method, in the grid's order."""
    cells = list(cells)
    wanted = {(cell.task, cell.label, f"noise{cell.noise:g}") for cell in cells}
    found: Curves = {cell.task: {} for cell in cells}
    for cell in cells:
        found[cell.task].setdefault(cell.label, [])
    for run in find_runs(root):
        task, method, noise = run.path.parts[-4], label(run).removesuffix(SCORED), run.path.parts[-2]
        if (task, method, noise) not in wanted:
            continue
        seen = curve(run)
        seen = seen if len(seen["return"]) else last_point(run)  # it was not scored on the way
        if len(seen["return"]):
            found[task][method].append(seen)
    kept = {task: {method: runs for method, runs in methods.items() if runs} for task, methods in found.items()}
    return {task: methods for task, methods in kept.items() if methods}


def _names(cells: Iterable[Cell]) -> dict[str, str]:
    return {cell.label: NAMES.get(cell.label, cell.label).replace("`", "") for cell in cells}
