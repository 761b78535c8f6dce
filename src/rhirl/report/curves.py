"""Learning curves of several runs: the mean over seeds as a line, the range over seeds as a band.

Runs that were scored only in the end are a dot there, with the range over seeds as a bar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhirl.report.figures import EXPERT, MUTED, STYLE

Curve = Mapping[str, NDArray[np.float64]]
AXES = {"executed": "executed steps", "simulated": "simulated steps", "seconds": "seconds of learning"}
WIDE = 50
"""From this factor between the first and the last step on, the axis is logarithmic."""
COLORS = ("#1f6f8b", "#7a4fa3", "#3a8a4f", "#b8860b", "#a33b53", "#4d5a66", "#c97fb1", "#6b8e23")


def learning_curves(
    tasks: Mapping[str, Mapping[str, Sequence[Curve]]],
    names: Mapping[str, str],
    over: Sequence[str] = tuple(AXES),
    height: str = "score",
) -> Figure:
    """Draw one row per task and one panel per axis.

    Args:
        tasks: Curves of every seed, by task and method.
        names: What the methods are called, in the order of their colours.
        over: Which of `AXES`.
        height: `score` or `return`.
    """
    with matplotlib.rc_context(STYLE):
        rows = max(1, len(tasks))
        figure = Figure(figsize=(1.2 + 3.4 * len(over), 0.8 + 2.6 * rows), layout="constrained")
        panels = figure.subplots(rows, len(over), squeeze=False)
        for row, (task, methods) in zip(panels, tasks.items(), strict=False):
            for axes, axis in zip(row, over, strict=True):
                for method, curves in methods.items():
                    color = COLORS[list(names).index(method) % len(COLORS)]
                    _draw(axes, curves, axis, height, color, names[method])
                _finish(axes, AXES[axis], height, [curve[axis] for curves in methods.values() for curve in curves])
            row[0].set_ylabel(f"{task}: {height}")
        if tasks:
            _legend(figure, [axes for row in panels for axes in row], columns=2 if len(over) == 1 else 4)
        else:
            empty(panels[0, 0])
    return figure


def empty(axes: Axes) -> None:
    """Say that there is nothing to draw yet."""
    axes.text(0.5, 0.5, "not run yet", transform=axes.transAxes, ha="center", va="center", color=MUTED)
    axes.set(xticks=[], yticks=[])


def over_seeds(curves: Sequence[Curve], axis: str, height: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Line seeds up by evaluation, as far as all of them go: mean x (n,) and heights (seeds, n)."""
    n = min(len(curve[height]) for curve in curves)
    return np.mean([curve[axis][:n] for curve in curves], axis=0), np.stack([curve[height][:n] for curve in curves])


def _draw(axes: Axes, curves: Sequence[Curve], axis: str, height: str, color: str, name: str) -> None:
    if not any(np.nan_to_num(curve["executed"]).any() for curve in curves):
        final = float(np.mean([curve[height][-1] for curve in curves]))
        axes.axhline(final, color=color, linestyle="--", linewidth=1.3, label=f"{name} ({len(curves)})")
        return
    if any(np.isnan(curve[axis]).any() for curve in curves):
        return  # a method without a planner has no simulated steps
    ends = [curve for curve in curves if len(curve[height]) == 1]
    scored = [curve for curve in curves if len(curve[height]) > 1]
    # A run without a curve must not cut those of the others short: over_seeds goes as far as all of them do.
    if scored:
        x, heights = over_seeds(scored, axis, height)
        axes.plot(x, heights.mean(axis=0), color=color, linewidth=1.8, label=f"{name} ({len(scored)})")
        axes.fill_between(x, heights.min(axis=0), heights.max(axis=0), color=color, alpha=0.18, linewidth=0)
    if ends:
        x, heights = over_seeds(ends, axis, height)
        axes.plot(x, heights.mean(axis=0), "o", color=color, label=f"{name}, in the end ({len(ends)})")
        axes.vlines(x, heights.min(axis=0), heights.max(axis=0), color=color, linewidth=1.8)


def _finish(axes: Axes, name: str, height: str, steps: Sequence[NDArray[np.float64]]) -> None:
    axes.set_xlabel(name)
    taken = np.concatenate([x[x > 0] for x in steps])
    if len(taken) and taken.max() > WIDE * taken.min():
        axes.set_xscale("log")
    if height == "score":
        axes.axhline(1.0, color=EXPERT, linewidth=1.2, label="expert")
        axes.axhline(0.0, color=MUTED, linewidth=1.2, linestyle=":", label="random")


def _legend(figure: Figure, panels: Sequence[Axes], columns: int) -> None:
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    figure.legend(
        handles=list(found.values()), labels=list(found), loc="outside lower center", ncols=columns, frameon=False
    )
