"""The face of every method at work: what training, resuming and evaluating need to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from rhirl.demos import Agent
from rhirl.experiments.run import RunDirectory

Line = dict[str, Any]


class Learner(Protocol):
    """A method at work, as a run drives it."""

    @property
    def iteration(self) -> int:
        """Iterations made so far."""
        ...

    @property
    def iterations(self) -> int:
        """Iterations at which it ends, at the latest."""
        ...

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to do."""
        ...

    @property
    def executed(self) -> int:
        """Steps executed on the system so far."""
        ...

    @property
    def state(self) -> Any:
        """Everything it knows, as one pytree of arrays."""
        ...

    def restore(self, state: Any) -> None:
        """Go on exactly where `state` was taken."""
        ...

    def step(self) -> Any:
        """Make one iteration and return its metrics."""
        ...

    def line(self, metrics: Sequence[Any]) -> Line:
        """Write a line of the log from the metrics of the last iterations."""
        ...

    def agent(self) -> Agent:
        """Make the agent that has been learned so far."""
        ...

    def save(self, run: RunDirectory) -> None:
        """Write what has been learned so far into the run directory."""
        ...

    def close(self) -> None:
        """Release what is held."""
        ...


def means(metrics: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Average each metric over the iterations that report it."""
    found: dict[str, list[Any]] = {}
    for reported in jax.device_get(list(metrics)):
        for name, value in reported.items():
            found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}
