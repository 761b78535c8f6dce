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

EVERY = 0.5
"""Seconds between two writes."""


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
    """Writes `progress.json` now and then."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress.json"
        before = read_progress(folder)
        self._spent = {} if before is None else dict(before.seconds)
        self._last = time.perf_counter()
        self._written = -EVERY

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Count the time since the last call to a stage, and write unless that was just done."""
        now = time.perf_counter()
        name = "evaluation" if stage.startswith("evaluating") else "training"
        self._spent[name] = self._spent.get(name, 0.0) + now - self._last
        self._last = now
        if now - self._written < EVERY and done < total:
            return
        self._written = now
        seen = Seen(stage, done, total, self._spent, os.getpid(), socket.gethostname())
        temporary = self._path.with_name("progress.json.tmp")
        temporary.write_text(json.dumps(seen._asdict()))
        os.replace(temporary, self._path)

    def seconds(self) -> dict[str, float]:
        """Return the time spent by stage, over all attempts."""
        return {f"{name}_s": round(self._spent.get(name, 0.0), 3) for name in ("training", "evaluation")}


def read_progress(folder: Path) -> Seen | None:
    """Read how far a cell is, if it says."""
    try:
        found: dict[str, Any] = json.loads((folder / "progress.json").read_text())
        return Seen(**found)
    except (FileNotFoundError, NotADirectoryError):
        return None
