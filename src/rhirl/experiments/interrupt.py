"""Stop cleanly: the first Ctrl-C asks, the second kills."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class StoppedError(Exception):
    """The person asked to stop, and everything is saved."""


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C (or SIGTERM) ask for a stop; the second one kills, as it always did."""
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        for name, handler in before.items():
            signal.signal(name, handler)

    try:
        before = {name: signal.signal(name, ask) for name in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: signals are somebody else's business
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
