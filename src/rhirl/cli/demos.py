"""Verbs about demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rhirl.cli.output import Counting, Json, Noise, TaskName, print_json, say


def collect(
    task: Positional[TaskName], /, *, noise: Noise = 0.0, episodes: int = 20, seed: int = 0, out: Path | None = None
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
    with Counting("collecting", episodes) as progress:
        demonstrations = demonstrate(get_task(task), noise=noise, episodes=episodes, seed=seed, progress=progress)
    write_demos(demonstrations, path)
    say(f"written: {path}")


def inspect(
    what: Positional[Annotated[str, arg(metavar="TASK-or-FILE")]],
    /,
    *,
    noise: Noise = 0.0,
    plot: Path | None = None,
    json: Json = False,
) -> None:
    """Look at demonstrations: how many, how long, how good, made with what.

    Args:
        what: A demonstration file, or a task whose bundled demonstrations to look at.
        noise: Noise level of the bundled demonstrations.
        plot: Draw returns, lengths and coordinates into this picture file.
        json: Print one JSON document on standard output.
    """
    from rhirl.demos import bundled_path, read_demos
    from rhirl.demos import inspect as inspection

    path = Path(what) if Path(what).exists() else bundled_path(what, noise)
    summary = inspection.summary(path)
    if plot is not None:
        inspection.plot(read_demos(path, force=True), plot)
        say(f"written: {plot}")
    if json:
        print_json(summary)
        return
    for key, value in summary.items():
        say(f"{key}: {value}")


def import_(
    source: Positional[Annotated[str, arg(metavar="SOURCE")]],
    /,
    *,
    task: str,
    out: Path,
    env_id: str | None = None,
    noise: Noise = 0.0,
    horizon: int | None = None,
    cut: bool = False,
) -> None:
    """Make a demonstration file from your own states: .npz, .csv, a folder of .csv, or a Minari dataset.

    Args:
        source: The file, the folder, or `minari:DATASET-ID`.
        task: The task they demonstrate.
        out: The demonstration file to write.
        env_id: The environment; by default the task's.
        noise: Standard deviation of the control noise while demonstrating, if any.
        horizon: Length T of the task; by default the task's.
        cut: Keep the first T steps of longer episodes instead of refusing them.
    """
    from rhirl.demos import write_demos
    from rhirl.demos.interchange import import_minari
    from rhirl.demos.tables import import_table
    from rhirl.tasks import TASKS

    known = TASKS.get(task)
    if known is None and env_id is None:
        raise ValueError(f"no task {task!r}: for a task of your own say which environment, with --env-id")
    environment = env_id or (known.env_id if known else "")
    length = horizon or (known.T if known else None)
    if source.startswith("minari:"):
        dataset = source.removeprefix("minari:")
        demonstrations = import_minari(dataset, task=task, env_id=environment, horizon=length, cut=cut, noise=noise)
    else:
        demonstrations = import_table(source, task=task, env_id=environment, horizon=length, cut=cut, noise=noise)
    write_demos(demonstrations, out)
    say(f"written: {out}: {len(demonstrations)} episodes")


def export(
    what: Positional[Annotated[str, arg(metavar="TASK-or-FILE")]],
    dataset: Positional[Annotated[str, arg(metavar="DATASET-ID")]],
    /,
    *,
    noise: Noise = 0.0,
) -> None:
    """Write demonstrations as a Minari dataset, with the executed controls.

    Args:
        what: A demonstration file, or a task whose bundled demonstrations to export.
        dataset: Minari's name for it, such as hopper/expert-v0.
        noise: Noise level of the bundled demonstrations.
    """
    from rhirl.demos import bundled_path, read_demos
    from rhirl.demos.interchange import export_minari
    from rhirl.tasks import get_task

    path = Path(what) if Path(what).exists() else bundled_path(what, noise)
    demonstrations = read_demos(path, everything=True)
    export_minari(demonstrations, dataset, get_task(demonstrations.meta.task).make_env())
    say(f"written: Minari dataset {dataset}")
