"""Verbs about speed. Machines are shared and noisy: look at the ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rhirl.cli.output import Json, TaskName, print_json, say


def simulator(task: Positional[TaskName], /, *, repetitions: int = 5, json: Json = False) -> None:
    """Throughput of a task's simulator, against its bare engine and Gymnasium's own loop.

    Args:
        task: The task's name.
        repetitions: How often each contestant runs, by turns.
        json: Print one JSON document on standard output.
    """
    from rhirl.experiments.bench import measure_simulator

    _show(measure_simulator(task, repetitions=repetitions), json)


def step(
    task: Positional[TaskName],
    /,
    *,
    preset: str = "default",
    set: tuple[str, ...] = (),
    noise: Annotated[float, arg(metavar="σ")] = 0.0,
    repetitions: int = 10,
    steps: int = 50,
    demos: Path | None = None,
    json: Json = False,
) -> None:
    """Time of one control step (plan and learn) over that of its rollouts alone.

    Args:
        task: The task's name.
        preset: Whose settings to use.
        set: Settings to change, such as `--set planner.M=50`.
        noise: Standard deviation of the system's control noise, amid which some tasks learn with other planners.
        repetitions: How often control steps and bare rollouts alternate.
        steps: Control steps in a repetition.
        demos: A demonstration file instead of the bundled one.
        json: Print one JSON document on standard output.
    """
    from rhirl.experiments.bench import measure_step

    result = measure_step(
        task, preset=preset, overrides=set, noise=noise, repetitions=repetitions, steps=steps, demos=demos
    )
    _show(result, json)


def _show(result: dict[str, object], json: bool) -> None:
    if json:
        print_json(result)
        return
    for key, value in result.items():
        say(f"{key}: {value:,.3g}" if isinstance(value, float) else f"{key}: {value}")
