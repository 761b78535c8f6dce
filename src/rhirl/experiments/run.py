"""The run directory: everything about one run, in one self-contained folder.

config.json         what was asked for: task, method, noise, seed, preset and every hyper-parameter
meta.json           what it was done with: versions, threads, demonstrations and their hash
metrics.jsonl       one line per logged iteration, appended as it happens
checkpoints/        the learner's whole state, the newest few
cost.safetensors    the learned cost
policy.safetensors  the learned policy, for methods that have one; RHIRL's guides its planner
danger.safetensors  how dangerous states are for that policy amid noise
explained.safetensors  the controls by which the simulator explains the demonstrations, for RHIRL's policy
eval/*.json         evaluations
report.html         the report
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rhirl.atomic import write_atomically


class RunError(ValueError):
    """A run directory that cannot be used, with what to do about it."""


@dataclass(frozen=True)
class RunConfig:
    """What a run was asked to do."""

    task: str
    method: str
    noise: float
    seed: int
    preset: str
    demos: str
    """Path of the demonstration file, or `bundled`."""
    episodes: int
    """Number of demonstrations learned from."""
    hyper: Mapping[str, Any]
    """Every hyper-parameter of the method."""
    evaluations: int = 10
    """How often the agent is scored while learning, on validation episodes; 0 saves that time."""
    demonstrated: float | None = None
    """Noise of the demonstrations, where it is not the noise acted under."""

    @property
    def shown(self) -> float:
        """The noise of the demonstrations."""
        return self.noise if self.demonstrated is None else self.demonstrated


@dataclass(frozen=True)
class RunDirectory:
    """A run directory on disk."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints lie."""
        return self.path / "checkpoints"

    @property
    def cost(self) -> Path:
        """The learned cost."""
        return self.path / "cost.safetensors"

    @property
    def policy(self) -> Path:
        """The learned policy, for methods that have one; RHIRL's guides its planner."""
        return self.path / "policy.safetensors"

    @property
    def danger(self) -> Path:
        """How dangerous states are for RHIRL's policy amid noise, as a cost file."""
        return self.path / "danger.safetensors"

    @property
    def explained(self) -> Path:
        """The controls by which the simulator explains the demonstrations, for RHIRL's proposal."""
        return self.path / "explained.safetensors"

    @property
    def metrics(self) -> Path:
        """The log of the run."""
        return self.path / "metrics.jsonl"

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "config.json").exists()

    def begin(self, config: RunConfig, meta: Mapping[str, Any]) -> None:
        """Write down what is asked for and what with."""
        self.write_json("meta.json", meta)
        self.write_json("config.json", asdict(config))

    def config(self) -> RunConfig:
        """Read what the run was asked to do."""
        try:
            return RunConfig(**json.loads((self.path / "config.json").read_text()))
        except FileNotFoundError:
            raise RunError(f"{self.path} is not a run directory: it has no config.json") from None
        except (TypeError, json.JSONDecodeError) as error:
            raise RunError(f"{self.path}/config.json cannot be read: {error}") from None

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        """Append one line to the log."""
        with open(self.metrics, "a") as file:
            file.write(json.dumps(line) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read the log; a last line that a crash cut short is left out."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text().split("\n")
        return [json.loads(line) for line in lines[:-1] if line]

    def rewind_metrics(self, iteration: int) -> None:
        """Drop what was logged after an iteration, because the run goes on from there."""
        kept = [json.dumps(line) + "\n" for line in self.read_metrics() if line["iteration"] <= iteration]
        write_atomically(self.metrics, "".join(kept).encode())

    def write_json(self, name: str, value: Any) -> Path:
        """Write a JSON file inside the run."""
        target = self.path / name
        write_atomically(target, (json.dumps(value, indent=1) + "\n").encode())
        return target
