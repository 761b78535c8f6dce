"""What is a learned cost worth? Let a run act with it and with one that has learned nothing, in the same episodes.

python benchmarks/untrained.py results/runs/hopper/rhirl/noise0.5/seed0 --episodes 10

Planner, proposal, and the look or the danger stay as they are. Episodes are validation episodes: nothing here is a
score. docs/tasks/hopper.md has the table.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import jax
import tyro

from rhirl.costs import Cost, load_cost, network_of, save_cost
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.evaluate import evaluate, load_agent
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.tasks import get_task

KEY = 7


def main(path: tyro.conf.Positional[Path], /, episodes: int = 5) -> None:
    """Compare returns with an untrained cost, the learned one, and the expert's."""
    run = RunDirectory(path)
    config = run.config()
    task, learned = get_task(config.task), load_cost(run.cost)
    seeds = episode_seeds(VALIDATION, config.seed, episodes)
    with tempfile.TemporaryDirectory() as folder:
        blank = RunDirectory(Path(shutil.copytree(path, Path(folder) / "run")))
        network = network_of(jax.random.key(KEY), (task.observation_dim,), config.hyper["hidden"])
        save_cost(Cost(learned.normalise, network), blank.cost)
        agents = {
            "untrained": load_agent(blank)[1],
            "learned": load_agent(run)[1],
            "expert": expert_agent(task, config.noise),
        }
        for name, agent in agents.items():
            returns = evaluate(task, agent, seeds, config.noise)
            print(f"{task.name} noise {config.noise:g} seed {config.seed} {name}", end=" ")
            print(f"{[round(r) for r in returns.tolist()]} mean {returns.mean():.0f}", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
