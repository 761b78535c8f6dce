"""The machine a run is done on, and how its cores are shared out among runs."""

from __future__ import annotations

import fcntl
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from rhirl.simulators.threads import usable_cores


def thread_environment(cores: int) -> dict[str, str]:
    """Name every thread count on purpose: a library that guesses takes the whole machine for each run.

    MuJoCo's and LunarLander's rollouts take as many threads as the process may use cores: see `claim_cores`.
    """
    count = str(cores)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC")
    eigen = f"--xla_cpu_multi_thread_eigen={'true' if cores > 1 else 'false'}"
    flags = " ".join(part for part in (os.environ.get("XLA_FLAGS", ""), eigen) if part)
    return {**dict.fromkeys(names, count), "XLA_FLAGS": flags}


def claim_cores(count: int) -> list[int]:
    """Bind this process to `count` cores that no other run on this machine has claimed, until it ends.

    A claim is a locked file that stays open: the system frees it with the process, however that ends. Where too few
    cores are free, or the system knows no binding, the process stays as it is.
    """
    if not hasattr(os, "sched_setaffinity"):
        return []
    folder = Path(tempfile.gettempdir()) / f"rhirl-cores-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    claimed: dict[int, int] = {}
    for core in sorted(os.sched_getaffinity(0)):
        if len(claimed) == count:
            break
        lock = os.open(folder / str(core), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            claimed[core] = lock
        except BlockingIOError:
            os.close(lock)
    if len(claimed) < count:
        for lock in claimed.values():
            os.close(lock)
        return []
    os.sched_setaffinity(0, claimed)
    return list(claimed)


def hardware() -> dict[str, Any]:
    """Describe the machine: processor, cores of the machine, cores this process may use, threads it was given."""
    usable = usable_cores()
    return {
        "processor": _processor(),
        "machine_cores": os.cpu_count(),
        "cores": usable,
        "threads": {name: os.environ[name] for name in sorted(thread_environment(1)) if name in os.environ},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
