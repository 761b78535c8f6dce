"""One run of a rival on the GPU: what it does, where it lies, and the words that stand for many of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rhirl.experiments import RunDirectory
from rhirl.experiments.plan import plan_run
from rhirl.experiments.reoptimise import plan_reoptimisation
from rhirl.experiments.run import RunConfig

DEMONSTRATIONS = {"pendulum": 20}
"""What a run learns from, as in `rhirl grid table1`; 10 on the other tasks."""


@dataclass(frozen=True)
class Cell:
    """One run."""

    task: str
    method: str
    noise: float
    seed: int
    onto: float | None = None
    """The noise under which the cost learned at `noise` is re-optimised."""
    settings: tuple[str, ...] = ()
    """What is changed, as after `rhirl train --set`."""
    preset: str = "default"

    @property
    def label(self) -> str:
        """The method, with its preset and what is changed."""
        preset = () if self.preset == "default" else (self.preset,)
        return "-".join((self.method, *preset, *self.settings))

    def learned(self, root: Path) -> RunDirectory:
        """Where the run lies that learns."""
        return RunDirectory(root / self.task / self.label / f"noise{self.noise:g}" / f"seed{self.seed}")

    @property
    def group(self) -> str:
        """The process it belongs to."""
        return f"{self.task}/{self.label}{'' if self.onto is None else '-reoptimised'}"

    def home(self, root: Path) -> RunDirectory:
        """Where this run lies."""
        learned = self.learned(root)
        return learned if self.onto is None else RunDirectory(learned.path / "reoptimised" / f"noise{self.onto:g}")

    def finished(self, root: Path) -> bool:
        """Whether nothing is left to learn."""
        home = self.home(root)
        return home.policy.exists() and not home.checkpoints.exists()

    def plan(self, root: Path) -> tuple[RunDirectory, RunConfig]:
        """Where this run lies, and what it does."""
        if self.onto is not None:
            return plan_reoptimisation(self.learned(root), self.onto)
        episodes = DEMONSTRATIONS.get(self.task, 10)
        config = plan_run(
            self.task, self.method, self.noise, self.seed, self.preset, episodes=episodes, overrides=self.settings
        )
        return self.learned(root), config


def cells(word: str) -> Iterator[Cell]:
    """Read TASK/METHODS/NOISES/SEEDS."""
    task, methods, noises, seeds = word.split("/")
    for label, noise, seed in product(methods.split(","), noises.split(","), seeds.split(",")):
        name, *settings = label.split("+")
        method, _, preset = name.partition("@")
        learned, _, onto = noise.partition(":")
        where = (float(learned), int(seed), float(onto) if onto else None)
        yield Cell(task, method, *where, tuple(settings), preset or "default")
