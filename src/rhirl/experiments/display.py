"""What a person sees while training, on standard error: a live line on a terminal, plain lines in a log."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from rhirl.experiments.train import Progress

WORDS: dict[str, Callable[[Any], str]] = {
    "eval/return": "return {:.1f}".format,
    "eval/score": "score {:.3f}".format,
    "train/loss": "loss {:+.2f}".format,
    "train/held_out": "held out {:+.2f}".format,
    "train/accuracy": "told apart {:.2f}".format,
    "train/reward": "reward {:+.2f}".format,
    "rehearsal/lost": "lost in rehearsal {:.2f}".format,
    "train/temperature": "temperature {:.3g}".format,
    "mppi/ess": "ESS {:.1f}".format,
    "mppi/spread": "spread {:.2f}".format,
    "steps/executed": lambda count: f"executed {short(count)}",
    "steps/simulated": lambda count: f"simulated {short(count)}",
    "time/steps_per_s": "{:.0f} steps/s".format,
}


class Display:
    """Shows the progress of a run: `with Display("pendulum", learning) as show: train(…, show=show)`."""

    def __init__(self, title: str, describe: Callable[[dict[str, Any]], str], *, quiet: bool = False) -> None:
        self._describe = describe
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[numbers]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=None, numbers="compiling …")
        self._seen: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Show how far the preparations are."""
        self._bar.update(self._task, numbers=f"{text} …")

    def __call__(self, progress: Progress) -> None:
        """Show where the run is."""
        self._seen |= progress.line
        self._bar.update(
            self._task, completed=progress.iteration, total=progress.iterations, numbers=self._describe(self._seen)
        )
        if not self.console.is_terminal and "eval/return" in progress.line:
            text = self._describe(progress.line)
            self.console.print(f"{progress.iteration}/{progress.iterations}  {text}", soft_wrap=True)


def learning(line: dict[str, Any]) -> str:
    """Write a line of a method's log for a person: what the line has, in this order."""
    parts = [write(line[key]) for key, write in WORDS.items() if line.get(key) is not None]
    if line.get("sim/invalid"):
        parts.append(f"invalid {short(line['sim/invalid'])}")
    return "  ".join(parts)


def acting(line: dict[str, Any]) -> str:
    """Write a line of an expert's log for a person."""
    parts = [f"return {line['eval/return']:.1f}"] if "eval/return" in line else []
    parts += [
        f"{name} {line[f'train/{name}']:.3g}" for name in ("critic_loss", "temperature") if f"train/{name}" in line
    ]
    return "  ".join([*parts, f"updates {short(line['steps/updates'])}", f"{line['time/steps_per_s']:.0f} steps/s"])


def short(count: int) -> str:
    """Write a count with a unit: 1234567 → 1.2M."""
    power = min(3, int(math.log10(max(count, 1))) // 3)
    return str(count) if power == 0 else f"{count / 1000**power:.1f}{'kMG'[power - 1]}"
