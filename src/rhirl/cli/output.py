"""What all verbs share: how to speak to people, how to speak to programs, and the words of arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tyro.conf import arg

TaskName = Annotated[str, arg(metavar="TASK")]
Json = Annotated[bool, arg(help="Print one JSON document on standard output.")]
Noise = Annotated[float, arg(metavar="σ", help="Standard deviation of the control noise, the paper's Σ column.")]


def say(message: Any) -> None:
    """Speak to a person, on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=isinstance(message, str)).print(message, markup=False)


def print_json(value: Any) -> None:
    """Speak to a program: one JSON document on standard output."""
    print(json.dumps(value))


class Counting:
    """A progress bar over episodes, with the running mean of the returns."""

    def __init__(self, title: str, total: int) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn(title),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[mean]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
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
