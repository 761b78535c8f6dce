"""The report of a grid: its tables, learning curves and films on one page that needs nothing else."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rhirl.atomic import write_atomically
from rhirl.experiments.grid import Cell, Spec
from rhirl.experiments.grid.estimates import in_words, took
from rhirl.experiments.grid.results import OURS, Result, read_results
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.tables import NAMES, SUMMARY, Table, entry_texts, summary_row, tabulate
from rhirl.report.curves import AXES, learning_curves
from rhirl.report.figures import data_uri, png
from rhirl.report.motion import film
from rhirl.report.page import STYLE
from rhirl.report.paper_figures import grid_curves
from rhirl.report.sortable import SCRIPT, Value, sortable
from rhirl.report.sortable import STYLE as TABLE_STYLE

PAGE_STYLE = """
body { max-width: 64rem; } .row figure { margin: 0; }
.row { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }
"""


def write_grid_report(spec: Spec, path: Path, *, videos: bool = True) -> Path:
    """Write everything there is to see of a grid as one HTML file.

    Args:
        spec: The grid; its runs are read from `spec.out`.
        path: The file.
        videos: Show the best run of each task in motion. Films are kept beside the page and made once.
    """
    done = [cell for cell in spec.cells if cell.is_done(spec.out)]
    results = read_results(spec.out) if spec.out.is_dir() else []
    transferred = any(set(cell.levels) - {cell.noise} for cell in spec.cells)
    table = tabulate(spec.cells, results, name=spec.name, title=spec.title, transferred=transferred)
    against = "the noise-free expert" if transferred else "the expert under the same noise"
    parts = [
        f"<h1>{html.escape(spec.title)}</h1>",
        f'<p class="lead">Grid <code>{html.escape(spec.name)}</code>: {len(done)} of {len(spec.cells)} cells done. '
        f"Ratios are to {against}, mean ± deviation over seeds, then interquartile mean with its 95 % bootstrap "
        "interval. What was not run is empty. Press a heading to sort.</p>",
        "<h2>Results</h2>",
        _results(table),
        *_summaries(table),
        *_curves(spec),
        *(_motion(spec, done, results, path.parent / "videos") if videos else ()),
        f"<h2>Cells</h2><details><summary>All {len(spec.cells)}, and what they took</summary>",
        f"{_cells(spec)}</details>",
    ]
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(spec.title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}{TABLE_STYLE}{PAGE_STYLE}</style></head><body>{''.join(parts)}<script>{SCRIPT}</script>"
        "</body></html>\n"
    )
    write_atomically(path, page.encode())
    return path


def _results(table: Table) -> str:
    rows: list[list[Value]] = []
    for cell in table.cells:
        ratio, iqm, seeds, paper = entry_texts(cell)
        numbers: list[Value] = [
            (ratio, cell.ratio),
            (iqm, cell.iqm),
            (seeds, cell.seeds or None),
            (paper, cell.paper_ratio),
        ]
        rows.append([cell.task, _name(cell.method), (f"{cell.noise:g}", cell.noise), *numbers])
    return sortable(["task", "method", "σ", "ratio", "IQM [95 %]", "seeds", "paper"], rows)


def _summaries(table: Table) -> Iterator[str]:
    if table.summaries:
        yield "<h2>Over all tasks that were run</h2>"
        rows = [[text.replace("`", "") for text in summary_row(summary)] for summary in table.summaries]
        yield sortable(SUMMARY, [[*row] for row in rows])


def _curves(spec: Spec) -> Iterator[str]:
    """Draw each task's curves, one picture per axis so that they stay legible on a phone."""
    names = {cell.label: _name(cell.label) for cell in spec.cells}
    noises = sorted({cell.noise for cell in spec.cells})
    for noise in noises:
        found = grid_curves([cell for cell in spec.cells if cell.noise == noise], spec.out)
        for task, methods in found.items():
            yield f"<h2>{html.escape(task)}: learning at σ = {noise:g}</h2><div class=row>"
            for axis, words in AXES.items():
                content = png(learning_curves({task: methods}, names, [axis]), dpi=110)
                yield _figure(content, "png", f"{task} at noise {noise:g}: score over {words}")
            yield "</div><p>Lines are means over seeds, bands their range; in brackets how many there are.</p>"


def _motion(spec: Spec, done: Sequence[Cell], results: Sequence[Result], folder: Path) -> Iterator[str]:
    """Show the best finished run of ours for each task, at the lowest noise it was run at."""
    scores = {(r.task, r.label, r.noise, r.seed): r.score for r in results}

    def rank(cell: Cell) -> tuple[float, float]:
        return cell.noise, -scores.get((cell.task, cell.label, cell.noise, cell.seed), -math.inf)

    ours = sorted((cell for cell in done if cell.method == OURS), key=rank)
    best = {cell.task: cell for cell in reversed(ours)}
    if best:
        yield "<h2>In motion</h2><div class=row>"
        for task, cell in best.items():
            run = RunDirectory(spec.out / cell.folder)
            try:
                content = _kept_film(run, folder / f"{'-'.join(cell.folder.parts)}.webp")
            except Exception as error:
                yield f"<p>{html.escape(task)}: cannot be drawn on this machine ({html.escape(str(error))}).</p>"
                continue
            yield _figure(content, "webp", f"{cell}: the expert and the learned controller from the same start")
        yield "</div>"


def _kept_film(run: RunDirectory, path: Path) -> bytes:
    if not path.exists() or path.stat().st_mtime < run.cost.stat().st_mtime:
        write_atomically(path, film(run))
    return path.read_bytes()


def _cells(spec: Spec) -> str:
    rows: list[list[Value]] = []
    for cell in spec.cells:
        folder = spec.out / cell.folder
        failure = folder / "failure.json"
        seconds = took(RunDirectory(folder))
        error = json.loads(failure.read_text())["error"] if failure.exists() else ""
        noise, seed = (f"{cell.noise:g}", cell.noise), (str(cell.seed), cell.seed)
        duration = ("" if seconds is None else in_words(seconds), seconds)
        rows.append([cell.task, _name(cell.label), noise, seed, _state(cell, spec.out), duration, error])
    return sortable(["task", "method", "σ", "seed", "state", "took", "error"], rows, long=["error"])


def _state(cell: Cell, root: Path) -> str:
    if cell.is_done(root):
        return "done"
    if (root / cell.folder / "failure.json").exists():
        return "failed"
    return "begun" if (root / cell.folder).exists() else "not run"


def _name(label: str) -> str:
    return NAMES.get(label, label).replace("`", "")


def _figure(content: bytes, kind: str, caption: str) -> str:
    text = html.escape(caption)
    source = data_uri(content, f"image/{kind}")
    return f'<figure><img alt="{text}" src="{source}"><figcaption>{text}</figcaption></figure>'
