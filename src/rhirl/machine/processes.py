"""Independent work in processes side by side, a core to each: the results of one process, sooner."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from rhirl.machine.cores import claim_cores, thread_environment

R = TypeVar("R")


def side_by_side(
    do: Callable[[int], R], numbers: Sequence[int], workers: int, progress: Callable[[int, R], None]
) -> list[R]:
    """Return `do(number)` for every number, in their order, from `workers` processes.

    Args:
        do: What is to be done; it travels to the processes, so it must be picklable.
        numbers: What to do it with: seeds of episodes, or which of several.
        workers: How many processes; they are spawned, since JAX does not survive a fork.
        progress: Called with 0, 1, … and a result whenever one is there, in whatever order they come.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(numbers)), context, initializer=_settle) as pool:
        futures = [pool.submit(do, number) for number in numbers]
        try:
            for count, future in enumerate(as_completed(futures)):
                progress(count, future.result())
        except BaseException:  # Ctrl-C too: nobody waits for what is left
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _settle() -> None:
    """Keep to one core: rollouts that took all of them would wait for each other."""
    os.environ.update(thread_environment(1))
    claim_cores(1)
