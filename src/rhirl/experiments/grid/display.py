"""What a person sees while a grid is done, on standard error: a live table on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rhirl.experiments.grid.cells import Cell
from rhirl.experiments.grid.engines import Ended
from rhirl.experiments.grid.estimates import Kind, durations, estimate, in_words, remaining
from rhirl.experiments.grid.progress import Seen, read_progress


class GridDisplay:
    """Shows a grid in work: `with GridDisplay(cells, root, workers=2) as tell: run_grid(…, tell=tell)`."""

    def __init__(self, cells: Sequence[Cell], root: Path, *, workers: int) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._root, self._workers = root, workers
        self._began = time.time()
        self._total = len(cells)
        self._open = [cell for cell in cells if not cell.is_done(root)]
        self._failed: dict[Cell, str] = {}
        self._known = durations(cells, root)
        self._live = Live(get_renderable=self.render, console=self.console, refresh_per_second=1, transient=True)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def __call__(self, ended: Ended, again: bool) -> None:
        """Say that an attempt has ended."""
        if ended.error is None:
            self.console.print(f"done: {ended.cell}", markup=False, soft_wrap=True)
        else:
            then = "goes on" if again and ended.died else "trying again" if again else "giving up"
            self.console.print(f"{then}: {ended.cell}: {ended.error}", markup=False, soft_wrap=True)
        if not again:
            self._open.remove(ended.cell)
            self._known |= durations([ended.cell], self._root)
            if ended.error is not None:
                self._failed[ended.cell] = ended.error

    def render(self) -> Group:
        """Draw what is in work, what failed, and how long it will take."""
        working = {cell: seen for cell in self._open if (seen := self._seen(cell)) is not None}
        table = Table("task", "method", "σ", "seed", "", "", "left", box=None, pad_edge=False)
        for cell, seen in working.items():
            left = remaining(seen, self._known.get(_kind(cell)))
            bar = ProgressBar(total=max(seen.total, 1), completed=seen.done, width=20)
            table.add_row(*_names(cell), bar, seen.stage, "" if left is None else in_words(left))
        for cell, reason in self._failed.items():
            table.add_row(*_names(cell), "", Text(f"failed: {reason}", style="red", overflow="ellipsis"), "")
        return Group(table, Text(self.summary(working)))

    def summary(self, working: dict[Cell, Seen]) -> str:
        """Count cells, and say how long the rest takes."""
        waiting = [cell for cell in self._open if cell not in working]
        done = self._total - len(self._open) - len(self._failed)
        lefts = [remaining(seen, self._known.get(_kind(cell))) for cell, seen in working.items()]
        rest = estimate(waiting, self._known)
        unknown = rest.unknown + sum(left is None for left in lefts)
        seconds = (rest.seconds + sum(left or 0.0 for left in lefts)) / self._workers
        about = f"about {in_words(seconds)} left" + (f", and {unknown} of unknown duration" if unknown else "")
        return (
            f"{done} done · {len(working)} in work · {len(waiting)} waiting · {len(self._failed)} failed · {about}"
        )

    def _seen(self, cell: Cell) -> Seen | None:
        """Read how far a cell is, unless that was written before this grid began: its worker is long dead."""
        folder = self._root / cell.folder
        seen = read_progress(folder)
        is_ours = seen is not None and (folder / "progress.json").stat().st_mtime >= self._began
        return seen if is_ours else None


def _names(cell: Cell) -> tuple[str, str, str, str]:
    return cell.task, cell.label, f"{cell.noise:g}", str(cell.seed)


def _kind(cell: Cell) -> Kind:
    return cell.task, cell.label
