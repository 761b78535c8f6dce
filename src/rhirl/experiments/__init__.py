"""Run directories, checkpoints, training, evaluation."""

from rhirl.experiments.checkpoint import CheckpointError
from rhirl.experiments.evaluate import evaluate, evaluate_run, references
from rhirl.experiments.interrupt import StoppedError
from rhirl.experiments.presets import configure
from rhirl.experiments.run import RunConfig, RunDirectory, RunError
from rhirl.experiments.train import train

__all__ = [
    "CheckpointError",
    "RunConfig",
    "RunDirectory",
    "RunError",
    "StoppedError",
    "configure",
    "evaluate",
    "evaluate_run",
    "references",
    "train",
]
