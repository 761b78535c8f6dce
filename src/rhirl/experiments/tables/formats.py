"""Write a table for people: Markdown for pages, CSV for spreadsheets, LaTeX (booktabs) for papers.

One row per task and method, and for each noise level four columns: mean ± deviation over seeds, interquartile mean
with its 95 % interval, number of seeds, the paper's ratio. What was not run is empty, never zero.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from rhirl.experiments.tables.table import NAMES, Entry, Summary, Table

COLUMNS = ("ratio", "IQM [95 %]", "seeds", "paper")
SUMMARY = ("method", "σ", "tasks", "seeds", "IQM [95 %]", "P(RHIRL better) [95 %]")


def markdown(table: Table) -> str:
    """Write a pipe table, and below it the summaries over tasks."""
    noises = _noises(table)
    head = ["task", "method", *(f"{column}, σ = {noise:g}" for noise in noises for column in COLUMNS)]
    parts = [f"**{table.name}.** {table.title}.", _pipes(head, _rows(table))]
    if table.summaries:
        parts.append(_pipes(SUMMARY, [summary_row(summary) for summary in table.summaries]))
    return "\n\n".join(parts) + "\n"


def as_csv(table: Table) -> str:
    """Write one line per cell, with every number in full."""
    buffer = io.StringIO()
    names = (
        "task",
        "method",
        "noise",
        "seeds",
        "ratio",
        "deviation",
        "iqm",
        "low",
        "high",
        "return",
        "expert",
        "paper_ratio",
    )
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for cell in table.cells:
        low, high = cell.interval or (None, None)
        numbers = (
            cell.ratio,
            cell.deviation,
            cell.iqm,
            low,
            high,
            cell.return_mean,
            cell.expert_return,
            cell.paper_ratio,
        )
        writer.writerow([cell.task, cell.method, f"{cell.noise:g}", cell.seeds, *numbers])
    return buffer.getvalue()


def latex(table: Table) -> str:
    """Write a tabular for the package booktabs."""
    noises = _noises(table)
    columns = "ll" + "cccc" * len(noises)
    head = " & ".join(["", "", *(rf"\multicolumn{{4}}{{c}}{{$\sigma = {noise:g}$}}" for noise in noises)])
    below = " & ".join(["task", "method", *(_tex(column) for _ in noises for column in COLUMNS)])
    body, last = [], ""
    for row in _rows(table):
        if last and row[0] != last:
            body.append(r"\midrule")
        body.append(" & ".join(_tex(text) for text in ["" if row[0] == last else row[0], *row[1:]]) + r" \\")
        last = row[0]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head + r" \\", below + r" \\", r"\midrule", *body]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


FORMATS: dict[str, Callable[[Table], str]] = {"markdown": markdown, "csv": as_csv, "latex": latex}


def _rows(table: Table) -> list[list[str]]:
    by_key = {(cell.task, cell.method, cell.noise): cell for cell in table.cells}
    rows = []
    for task, method in dict.fromkeys((cell.task, cell.method) for cell in table.cells):
        shown = [by_key.get((task, method, noise)) for noise in _noises(table)]
        rows.append([task, NAMES.get(method, method), *(text for cell in shown for text in entry_texts(cell))])
    return rows


def entry_texts(cell: Entry | None) -> tuple[str, str, str, str]:
    """Write what `COLUMNS` ask of a cell."""
    if cell is None:
        return "", "", "", ""
    paper = "" if cell.paper_ratio is None else f"{cell.paper_ratio:.2f}"
    if cell.ratio is None:
        return "", "", "", paper
    return (
        f"{cell.ratio:.3f} ± {cell.deviation:.3f}",
        _with_interval(cell.iqm, cell.interval),
        str(cell.seeds),
        paper,
    )


def summary_row(summary: Summary) -> list[str]:
    """Write what `SUMMARY` asks of a method over all tasks."""
    return [
        NAMES.get(summary.method, summary.method),
        f"{summary.noise:g}",
        str(summary.tasks),
        str(summary.seeds),
        _with_interval(summary.iqm, summary.interval),
        _with_interval(summary.improvement, summary.improvement_interval),
    ]


def _with_interval(value: float | None, limits: tuple[float, float] | None) -> str:
    return "" if value is None or limits is None else f"{value:.3f} [{limits[0]:.3f}, {limits[1]:.3f}]"


def _noises(table: Table) -> list[float]:
    return sorted({cell.noise for cell in table.cells})


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _tex(text: str) -> str:
    for plain, written in (("_", r"\_"), ("%", r"\%"), ("±", r"$\pm$"), ("σ", r"$\sigma$"), ("`", "")):
        text = text.replace(plain, written)
    return text
