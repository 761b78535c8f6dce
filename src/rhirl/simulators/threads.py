"""How many threads a simulator may use, and how it shares its rollouts among them."""

from __future__ import annotations

import os
from itertools import pairwise


def usable_cores() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split(M: int, threads: int, lanes: int) -> list[slice]:
    """Share M rollouts evenly over a multiple of the threads, at most `lanes` to a group."""
    if M == 0:
        return []
    groups = min(M, -(-M // (lanes * threads)) * threads)
    ends = [M * i // groups for i in range(groups + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]
