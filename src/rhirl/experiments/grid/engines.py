"""What does the cells of a grid: Ray's worker processes, on this machine or a cluster, or this process by itself.

An engine takes cells in order and tells which have ended, and how. A worker that is killed has *died*: its cell can
simply go on. A cell that raised has *failed*: its error is kept in the run directory and shown.
"""

from __future__ import annotations

import json
import os
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rhirl.experiments.grid.cells import Cell, run_cell
from rhirl.experiments.interrupt import StoppedError
from rhirl.experiments.run import RunDirectory
from rhirl.machine import claim_cores, thread_environment
from rhirl.simulators.threads import usable_cores


class Ended(NamedTuple):
    """A cell that is no longer being worked on."""

    cell: Cell
    error: str | None = None
    died: bool = False


class Engine(Protocol):
    """Whatever does cells."""

    slots: int
    """How many it does at a time."""

    def submit(self, cell: Cell) -> None:
        """Take a cell, to be done after those that were taken before."""
        ...

    def wait(self) -> Sequence[Ended]:
        """Wait a while, and tell which cells have ended meanwhile."""
        ...

    def close(self) -> None:
        """Stop working; what was begun can be resumed."""
        ...


class InTurn:
    """Does one cell after the other in this process."""

    slots = 1

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiting: deque[Cell] = deque()

    def submit(self, cell: Cell) -> None:
        """Put a cell at the end of the queue."""
        self._waiting.append(cell)

    def wait(self) -> Sequence[Ended]:
        """Do the next cell."""
        cell = self._waiting.popleft()
        return [Ended(cell, attempt(cell, self._root))]

    def close(self) -> None:
        """Nothing to stop."""


class OnRay:
    """Does cells in Ray's worker processes, each cell in a fresh one that owns `cores` cores.

    Args:
        root: Where runs lie; every machine of a cluster must see it under this path.
        cores: Cores, and so threads, of a cell.
        workers: Cells at a time; by default as many as there are cores for.
        address: Of a running cluster; by default Ray starts on this machine and ends with the grid.
    """

    def __init__(
        self, root: Path, *, cores: int = 1, workers: int | None = None, address: str | None = None
    ) -> None:
        self._ray = _import_ray()
        self._root = root.resolve()
        self._cores = cores
        self._running: dict[Any, Cell] = {}
        here = usable_cores()
        local: dict[str, Any] = {"num_cpus": (workers or max(1, here // cores)) * cores}
        local |= {"include_dashboard": False, "object_store_memory": 100 * 2**20}
        self._ray.init(
            address=address or "local",
            runtime_env={"env_vars": thread_environment(cores)},
            log_to_driver=False,
            logging_level="ERROR",
            **({} if address else local),
        )
        self.slots = max(1, int(self._ray.cluster_resources().get("CPU", cores)) // cores)
        self._do = self._ray.remote(num_cpus=cores, max_calls=1, max_retries=0)(_work)
        if address:
            self._check_nodes()

    def submit(self, cell: Cell) -> None:
        """Queue a cell; Ray starts it when cores are free."""
        self._running[self._do.remote(json.dumps(asdict(cell)), str(self._root), self._cores)] = cell

    def wait(self) -> Sequence[Ended]:
        """Wait for up to a second."""
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=1.0)
        return [self._end(reference) for reference in ready]

    def close(self) -> None:
        """Leave the cluster; a local one ends with its workers."""
        self._ray.shutdown()

    def _end(self, reference: Any) -> Ended:
        cell = self._running.pop(reference)
        try:
            return Ended(cell, self._ray.get(reference))
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            return Ended(cell, f"its worker died: {reason}", died=True)

    def _check_nodes(self) -> None:
        """Make sure that every machine runs this version and sees the results under the same path."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._root.mkdir(parents=True, exist_ok=True)
        token = self._root / f".cluster-{os.getpid()}"
        token.touch()
        probe: Any = self._ray.remote(num_cpus=0)(_probe)
        try:
            nodes = [node for node in self._ray.nodes() if node["Alive"]]
            found = self._ray.get(
                [
                    probe.options(
                        scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                    ).remote(str(token))
                    for node in nodes
                ]
            )
        finally:
            token.unlink()
        for node, (version, sees) in zip(nodes, found, strict=True):
            name = node["NodeManagerHostname"]
            if not sees:
                raise ValueError(f"{name} does not see {self._root}: put --out on a file system all machines share")
            if version != _version():
                raise ValueError(
                    f"{name} has rhirl {version}, here it is {_version()}: install the same everywhere"
                )


def attempt(cell: Cell, root: Path) -> str | None:
    """Do a cell; return None, or why it failed, which `failure.json` in the run directory tells at length."""
    try:
        run_cell(cell, root)
    except StoppedError:
        raise KeyboardInterrupt from None  # the person asked, and the run is saved: that ends the whole grid
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        record = {"error": reason, "traceback": traceback.format_exc()}
        RunDirectory(root / cell.folder).write_json("failure.json", record)
        return reason
    return None


def cell_from_json(text: str) -> Cell:
    """Read a cell as it travels to a worker."""
    values: dict[str, Any] = json.loads(text)
    return Cell(**values | {name: tuple(value) for name, value in values.items() if isinstance(value, list)})


def _work(cell: str, root: str, cores: int) -> str | None:
    claim_cores(cores)
    return attempt(cell_from_json(cell), Path(root))


def _probe(token: str) -> tuple[str, bool]:
    return _version(), Path(token).exists()


def _version() -> str:
    from importlib.metadata import version

    return version("rhirl")


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ImportError(
            "grids run on Ray, which is not installed: pip install 'rhirl[cluster]', or add --in-turn"
        ) from None
    return ray
