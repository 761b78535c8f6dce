"""How good is a run's proposal without a planner? Let it act alone, in validation episodes.

python benchmarks/alone.py results/runs/ant/rhirl/noise0.5/seed0 --episodes 100

An episode takes a fraction of a second where planning takes half a minute, so that rehearsals can be judged by a
hundred of them. Nothing here is a score.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tyro

from rhirl.experiments.agents import PolicyAgent
from rhirl.experiments.evaluate import evaluate
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.rl import Policy
from rhirl.tasks import get_task


def main(*paths: tyro.conf.Positional[Path], episodes: int = 100) -> None:
    """Print the mean return of each run's proposal, its standard error, and how many returns are negative."""
    for path in paths:
        run = RunDirectory(path)
        asked = run.config()
        seeds = episode_seeds(VALIDATION, asked.seed, episodes)
        agent = PolicyAgent(Policy.load(run.policy))
        returns = evaluate(get_task(asked.task), agent, seeds, asked.noise)
        error = returns.std() / np.sqrt(episodes)
        print(
            f"{path}: {returns.mean():.0f} ± {error:.0f}, {np.count_nonzero(returns < 0)} of {episodes} below zero",
            flush=True,
        )


if __name__ == "__main__":
    tyro.cli(main)
