"""The command line: one verb for each thing a person wants.

What `--json` prints is one JSON document on standard output and nothing else; people's words go to standard error.
Heavy imports wait inside the verbs, so that help is quick and worker processes stay small.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional, arg

Method = Literal["rhirl"]
RunArgument = Annotated[Path, arg(metavar="RUN", help="A run directory.")]
Json = Annotated[bool, arg(help="Print one JSON document on standard output.")]
Noise = Annotated[float, arg(metavar="σ", help="Standard deviation of the control noise, the paper's Σ column.")]


def tasks(*, json: Json = False) -> None:
    """What there is: sizes, horizons, the expert's and the paper's scores."""
    from rhirl.experiments.listing import task_table

    rows = task_table()
    if json:
        _print_json(rows)
        return
    from rich.table import Table

    table = Table(
        "task", "environment", "n, m", "T", "expert", "random", "paper's expert", "paper's RHIRL", box=None
    )
    for row in rows:
        size = f"{row['observation_dim']}, {row['control_dim']}"
        shown = [row[key] for key in ("expert_return", "random_return", "paper_expert", "paper_rhirl")]
        table.add_row(
            row["task"], row["env_id"], size, str(row["T"]), *("–" if x is None else f"{x:.0f}" for x in shown)
        )
    _say(table)


def train(
    task: Positional[str],
    /,
    *,
    method: Method = "rhirl",
    noise: Noise = 0.0,
    seed: int = 0,
    preset: str = "default",
    out: Path | None = None,
    resume: bool = False,
    demos: Path | None = None,
    episodes: int | None = None,
    set: tuple[str, ...] = (),
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Learn a cost from demonstrations.

    Args:
        task: The task's name; `rhirl tasks` lists them.
        method: How to learn.
        noise: Noise of the demonstrations, and of the system the learner acts in.
        seed: Of everything random.
        preset: `default` is what we recommend, `paper` the published algorithm.
        out: The run directory; by default runs/<task>/<method>/noise<σ>/seed<k>.
        resume: Go on from the newest checkpoint of the run directory, bit for bit.
        demos: A demonstration file of your own instead of the bundled one.
        episodes: Learn from the first so many demonstrations only.
        set: Settings to change, such as `--set lr=1e-3 planner.M=100`.
        force: Accept demonstrations made with other simulator versions.
        quiet: Say nothing but errors.
    """
    from rhirl.experiments import RunDirectory, StoppedError
    from rhirl.experiments.display import Display
    from rhirl.experiments.plan import plan_run
    from rhirl.experiments.train import train as run_training

    config = plan_run(task, method, noise, seed, preset, demos, episodes, set, force)
    run = RunDirectory(out or Path("runs") / task / method / f"noise{noise:g}" / f"seed{seed}")
    with Display(f"{task} {method}", quiet=quiet) as display:
        try:
            run_training(
                run, config, resume=resume, force=force, show=display, warn=lambda text: _say(f"warning: {text}")
            )
        except StoppedError as stopped:
            _say(f"{stopped}\nGo on with: rhirl train {task} --out {run.path} --resume")
            sys.exit(130)
    if not quiet:
        _say(f"learned: {run.cost}\nNext: rhirl eval {run.path}; rhirl report {run.path}")


def evaluate(
    run: Positional[RunArgument],
    /,
    *,
    episodes: int = 50,
    noise: Annotated[float | None, arg(metavar="σ")] = None,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Score a run in the plain Gymnasium environment, on seeds that training never saw.

    Args:
        run: A run directory.
        episodes: How many episodes.
        noise: Standard deviation of the control noise; by default that of the run.
        seed: Which block of evaluation seeds.
        json: Print one JSON document on standard output.
    """
    from rhirl.experiments import RunDirectory, evaluate_run
    from rhirl.report.page import summary

    with _Counting("evaluating", episodes) as progress:
        result = evaluate_run(RunDirectory(run), episodes=episodes, noise=noise, seed=seed, progress=progress)
    if json:
        _print_json(result)
    else:
        _say(summary(result))


def report(run: Positional[RunArgument], /) -> None:
    """Draw a run: learning curve, learned cost, planner health, animation; one HTML file."""
    from rhirl.experiments import RunDirectory
    from rhirl.report import write_report

    _say(f"written: {write_report(RunDirectory(run))}")


def doctor(*, json: Json = False) -> None:
    """Look whether this installation is well: versions, threads, a self-check."""
    from rhirl.experiments.doctor import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        if not json:
            _say(f"{'ok  ' if finding.well else 'BAD '} {finding.what}: {finding.detail}")
    if json:
        _print_json([finding._asdict() for finding in findings])
    if not all(finding.well for finding in findings):
        sys.exit(1)


def demos_collect(
    task: Positional[str], /, *, noise: Noise = 0.0, episodes: int = 20, seed: int = 0, out: Path | None = None
) -> None:
    """Let the task's expert demonstrate.

    Args:
        task: The task's name.
        noise: Standard deviation of the control noise.
        episodes: How many demonstrations.
        seed: Which block of demonstration seeds.
        out: The file; by default <task>-noise<σ>.npz here.
    """
    from rhirl.demos import write_demos
    from rhirl.experiments.demonstrate import demonstrate
    from rhirl.tasks import get_task

    path = out or Path(f"{task}-noise{noise:g}.npz")
    with _Counting("collecting", episodes) as progress:
        demos = demonstrate(get_task(task), noise=noise, episodes=episodes, seed=seed, progress=progress)
    write_demos(demos, path)
    _say(f"written: {path}")


VERBS: dict[str, Callable[..., None]] = {
    "tasks": tasks,
    "train": train,
    "eval": evaluate,
    "report": report,
    "doctor": doctor,
}
GROUPS: dict[str, dict[str, Callable[..., None]]] = {
    "demos": {"collect": demos_collect},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    words = list(sys.argv[1:] if argv is None else argv)
    verbs, name = VERBS | {group: _group(group) for group in GROUPS}, "rhirl"
    if words and words[0] in GROUPS:
        verbs, name = GROUPS[words[0]], f"rhirl {words[0]}"
        words = words[1:]
    try:
        tyro.extras.subcommand_cli_from_dict(verbs, prog=name, description=_description(name), args=words)
    except (ValueError, FileNotFoundError, KeyError) as error:
        _say(f"error: {error.args[0] if error.args else error}")
        sys.exit(2)


def _description(name: str) -> str:
    if name == "rhirl":
        return "Learn a cost function from state-only, noisy demonstrations by planning with a simulator."
    return str(_group(name.removeprefix("rhirl ")).__doc__)


def _group(name: str) -> Callable[[], None]:
    """Stand in for a group of verbs in the list of all."""

    def verb() -> None:
        main([name, "--help"])

    verb.__doc__ = {"demos": "Demonstrations: collect."}[name]
    return verb


def _say(message: Any) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=isinstance(message, str)).print(message, markup=False)


def _print_json(value: Any) -> None:
    print(json.dumps(value))


class _Counting:
    """A progress bar over episodes, with the running mean of the returns."""

    def __init__(self, title: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (
            TextColumn(title),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[mean]}"),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(title, total=total, mean="")
        self._sum = 0.0

    def __enter__(self) -> Callable[[int, float], None]:
        self._bar.start()
        return self._advance

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _advance(self, index: int, total: float) -> None:
        self._sum += total
        self._bar.update(self._task, completed=index + 1, mean=f"mean return {self._sum / (index + 1):.1f}")


if __name__ == "__main__":
    main()
