"""Verbs about many runs: do a grid of them, rebuild the paper's tables and figures, one page about all of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from rhirl.cli.output import Json, print_json, say

if TYPE_CHECKING:
    from rhirl.experiments.grid import Outcome, Spec

SpecName = Annotated[str, arg(metavar="SPEC", help="A built-in grid, or a .toml file.")]
Results = Annotated[Path, arg(help="The folder of runs to read.")]
RESULTS = Path("results/runs")
Format = Literal["markdown", "csv", "latex"]
Figure = Literal["curves", "horizon", "stochastic", "error-growth"]


def grid(
    spec: Positional[SpecName],
    /,
    *,
    dry_run: bool = False,
    address: str | None = None,
    cores_per_run: int = 1,
    workers: int | None = None,
    retries: int = 2,
    seeds: int | None = None,
    out: Path | None = None,
    in_turn: bool = False,
    json: Json = False,
) -> None:
    """Do many runs: table1, table2, ablation-horizon, learning-curves, stochastic, smoke, or a grid of your own.

    What is done is skipped, what was killed goes on from its checkpoint, so the same command continues a grid.

    Args:
        spec: A built-in grid, or a .toml file.
        dry_run: Only print what would run, and how long it would take.
        address: Of a running Ray cluster, such as `auto`; by default Ray uses this machine.
        cores_per_run: Cores, and so threads, that each run gets.
        workers: Runs at a time on this machine; by default as many as there are cores for.
        retries: How often a run that fails is tried again.
        seeds: Use seeds 0 … N - 1 instead of what the grid says.
        out: Where the run directories go; by default where the grid says, which is mostly results/runs.
        in_turn: One run after the other in this process, without Ray.
        json: Print one JSON document on standard output.
    """
    from rhirl.experiments.grid import GridDisplay, InTurn, OnRay, check, read_spec, run_grid

    chosen = read_spec(spec, seeds=seeds, out=out)
    in_the_way = check(chosen.cells, chosen.out)
    if dry_run:
        for error in in_the_way:
            say(f"in the way: {error}")
        at_a_time = 1 if in_turn else workers or max(1, (os.cpu_count() or 1) // cores_per_run)
        _foretell(chosen, at_a_time, json)
        return
    for error in in_the_way:
        raise error
    engine = (
        InTurn(chosen.out) if in_turn else OnRay(chosen.out, cores=cores_per_run, workers=workers, address=address)
    )
    with GridDisplay(chosen.cells, chosen.out, workers=engine.slots) as display:
        try:
            outcome = run_grid(chosen.cells, chosen.out, engine, retries=retries, tell=display)
        except KeyboardInterrupt:
            say(f"stopped; everything is saved\nGo on with: rhirl grid {spec}")
            sys.exit(130)
    _tell(chosen, outcome, json)


def table(
    number: Positional[Annotated[int, arg(metavar="1|2")]],
    /,
    *,
    results: Results = RESULTS,
    format: Format = "markdown",
    csv: bool = False,
    latex: bool = False,
    json: Json = False,
) -> None:
    """Rebuild one of the paper's tables from raw results, the paper's number beside ours.

    Args:
        number: 1 is learned at every noise level; 2 is learned without noise and acting under it.
        results: The folder of runs to read.
        format: How to write it.
        csv: Short for --format csv.
        latex: Short for --format latex.
        json: Print one JSON document on standard output.
    """
    from rhirl.experiments.tables import FORMATS, make_table

    made = make_table(number, results)
    if json:
        print_json(made.as_json())
    else:
        print(FORMATS["csv" if csv else "latex" if latex else format](made), end="")


def figure(
    name: Positional[Annotated[Figure, arg(metavar="NAME")]],
    /,
    *,
    results: Results = RESULTS,
    out: Path | None = None,
) -> None:
    """Redraw a figure from raw results: curves, horizon, stochastic, error-growth.

    Args:
        name: Learning curves; the horizon K on Hopper; M_s under process noise; how the error grows with T.
        results: The folder of runs to read.
        out: The picture file, .svg, .png or .pdf; by default runs/figures/NAME.svg.
    """
    from rhirl.report.paper_figures import FIGURES

    path = out or Path("runs/figures") / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    FIGURES[name](results).savefig(path, dpi=150)
    say(f"written: {path}")


def report(
    what: Positional[Annotated[str, arg(metavar="RUN-or-GRID")]],
    /,
    *,
    pictures: Path | None = None,
    results: Annotated[Path | None, arg(help="The folder of runs to read.")] = None,
    out: Path | None = None,
    videos: bool = True,
) -> None:
    """Draw a run, or a whole grid: tables, curves, animations; one HTML file that needs nothing else.

    Args:
        what: A run directory, a built-in grid, or a grid's .toml file.
        pictures: A folder in which to keep the pictures of a run as files too.
        results: Where the runs of a grid lie; by default where the grid says.
        out: The page about a grid; by default runs/GRID/report.html.
        videos: Show the best run of each task in motion; takes an episode of planning each.
    """
    from rhirl.experiments.grid import is_spec, read_spec

    if Path(what).is_dir() or not is_spec(what):
        from rhirl.cli import runs

        runs.report(Path(what), pictures=pictures)
        return
    from rhirl.report.grid_page import write_grid_report

    spec = read_spec(what, out=results)
    say(f"written: {write_grid_report(spec, out or Path('runs') / spec.name / 'report.html', videos=videos)}")


def _foretell(spec: Spec, at_a_time: int, json: bool) -> None:
    """Say what would run and how long it would take."""
    from rhirl.experiments.grid.estimates import durations, estimate, in_words

    open_cells = [cell for cell in spec.cells if not cell.is_done(spec.out)]
    known = durations(spec.cells, spec.out)
    total = estimate(open_cells, known)
    if json:
        shown = [
            {"cell": str(cell), "folder": str(cell.folder), "seconds": known.get((cell.task, cell.label))}
            for cell in open_cells
        ]
        facts = {"grid": spec.name, "done": len(spec.cells) - len(open_cells), "core_seconds": total.seconds}
        print_json({**facts, "unknown": total.unknown, "workers": at_a_time, "would_run": shown})
        return
    for cell in open_cells:
        seconds = known.get((cell.task, cell.label))
        say(f"{cell}: {'duration unknown' if seconds is None else in_words(seconds)}")
    say(
        f"{spec.title}: {len(spec.cells)} cells, {len(spec.cells) - len(open_cells)} done, {len(open_cells)} to run"
    )
    about = f"{in_words(total.seconds)} of runs, {in_words(total.seconds / at_a_time)} with {at_a_time} at a time"
    say(about + (f"; {total.unknown} cells of unknown duration not counted" if total.unknown else ""))


def _tell(spec: Spec, outcome: Outcome, json: bool) -> None:
    """Say what became of a grid; failures make the command fail."""
    if json:
        failed = [{"cell": str(ended.cell), "error": ended.error} for ended in outcome.failed]
        counts = {"skipped": len(outcome.skipped), "finished": len(outcome.finished)}
        print_json({"grid": spec.name, "out": str(spec.out), **counts, "failed": failed})
    else:
        say(
            f"{spec.title}: {len(outcome.finished)} finished, {len(outcome.skipped)} were done before, "
            f"{len(outcome.failed)} failed; runs lie in {spec.out}"
        )
        for ended in outcome.failed:
            say(f"failed: {ended.cell}: {ended.error}\n  see {spec.out / ended.cell.folder / 'failure.json'}")
    if outcome.failed:
        sys.exit(1)
