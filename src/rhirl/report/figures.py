"""Figures every run has: how well it learned, and whether the planner stayed healthy."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

INK, EXPERT, LEARNED, MUTED = "#1b1f24", "#c2571a", "#1f6f8b", "#8a939c"
STYLE: dict[Any, Any] = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "svg.fonttype": "none",
    "xtick.color": INK,
    "ytick.color": INK,
}


def learning_curve(metrics: Sequence[dict[str, Any]], expert: float, random: float) -> Figure:
    """Draw the evaluated return over executed steps, between a random agent and the expert."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.subplots()
        evaluated = [line for line in metrics if "eval/return" in line]
        steps = [line["steps/executed"] for line in evaluated]
        axes.axhline(expert, color=EXPERT, linewidth=1.5, label=f"expert ({expert:.0f})")
        axes.axhline(random, color=MUTED, linewidth=1.5, linestyle=":", label=f"random ({random:.0f})")
        axes.plot(steps, [line["eval/return"] for line in evaluated], "o-", color=LEARNED, label="learned")
        axes.set_xlabel("executed steps")
        axes.set_ylabel("return, 5 validation episodes")
        axes.legend(frameon=False, loc="best")
    return figure


def planner_health(metrics: Sequence[dict[str, Any]], M: int) -> Figure:
    """Draw the effective sample size and the spread of S over the samples, over executed steps."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        ess, spread = figure.subplots(1, 2)
        metrics = [line for line in metrics if "mppi/ess" in line]  # where the proposal rehearses, nobody plans
        steps = [line["steps/executed"] for line in metrics]
        ess.plot(steps, [line["mppi/ess"] for line in metrics], color=LEARNED)
        ess.set(xlabel="executed steps", ylabel=f"effective sample size (of M = {M})", ylim=(0, None))
        spread.plot(steps, [line["mppi/spread"] for line in metrics], color=LEARNED)
        spread.set(xlabel="executed steps", ylabel="spread of S over the samples", yscale="log")
    return figure


def png(figure: Figure, dpi: int = 150) -> bytes:
    """Render a figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def data_uri(content: bytes, kind: str) -> str:
    """Put bytes into an address, so that a page needs no other file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
