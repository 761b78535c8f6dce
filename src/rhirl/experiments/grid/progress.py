"""How far a cell is: a small file in its run directory, which anybody who sees the directory can read.

The file outlives a killed worker, and the time it counts goes on in the next one: what a cell took includes what
was lost.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

from rhirl.atomic import write_atomically

EVERY = 0.5
"""Seconds between two writes."""
STARTING, STAGES = "starting", ("training", "evaluation")


class Seen(NamedTuple):
    """What a progress file says."""

    stage: str
    done: int
    total: int
    seconds: dict[str, float]
    """Time spent so far, by stage: `training`, `evaluation`."""
    pid: int
    host: str


class Watch:
    """Writes `progress.json` now and then, and knows what was spent: in this attempt, and in all before it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress.json"
        self.spent = _spent(folder)
        self._last = time.perf_counter()
        self._written = -EVERY

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Count the time since the last call to a stage, and write unless that was just done."""
        now = time.perf_counter()
        if stage != STARTING:
            name = "evaluation" if stage.startswith("evaluating") else "training"
            self.spent[name] = self.spent.get(name, 0.0) + now - self._last
            self._last = now
        if now - self._written < EVERY and done < total:
            return
        self._written = now
        seen = Seen(stage, done, total, self.spent, os.getpid(), socket.gethostname())
        write_atomically(self._path, json.dumps(seen._asdict()).encode())


def _spent(folder: Path) -> dict[str, float]:
    """Read what earlier attempts spent: a killed one left its progress, a finished one its timing."""
    before = read_progress(folder)
    if before is not None:
        return dict(before.seconds)
    timing = folder / "timing.json"
    values = json.loads(timing.read_text()) if timing.exists() else {}
    return {stage: values[f"{stage}_s"] for stage in STAGES if f"{stage}_s" in values}


def read_progress(folder: Path) -> Seen | None:
    """Read how far a cell is, if it says."""
    try:
        found: dict[str, Any] = json.loads((folder / "progress.json").read_text())
        return Seen(**found)
    except (FileNotFoundError, NotADirectoryError):
        return None
