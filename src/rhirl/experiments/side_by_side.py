"""Episodes in processes side by side, a core to each: the returns of one process, sooner."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from rhirl.experiments.hardware import claim_cores, thread_environment


def side_by_side(
    episode: Callable[[int], float], seeds: Sequence[int], workers: int, progress: Callable[[int, float], None]
) -> list[float]:
    """Return `episode(seed)` for every seed, in their order, from `workers` processes.

    Args:
        episode: Runs one episode and returns its return; it travels to the processes, so it must be picklable.
        seeds: Of the episodes.
        workers: How many processes; they are spawned, since JAX does not survive a fork.
        progress: Called with 0, 1, … and a return whenever one is there, in whatever order they come.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(seeds)), context, initializer=_settle) as pool:
        futures = [pool.submit(episode, seed) for seed in seeds]
        try:
            for count, future in enumerate(as_completed(futures)):
                progress(count, future.result())
        except BaseException:  # Ctrl-C too: nobody waits for the episodes that are left
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _settle() -> None:
    """Keep to one core: rollouts that took all of them would wait for each other."""
    os.environ.update(thread_environment(1))
    claim_cores(1)
