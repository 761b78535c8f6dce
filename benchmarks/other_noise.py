"""Measure what a cost is worth under noise it was not learned under, if the proposal rehearses with it first.

    python benchmarks/other_noise.py results/runs/hopper/rhirl/noise0/seed0 --noise 0.5 --rounds 100

The run's proposal rehearses in the simulator under this noise, by the learned cost alone, and then acts by itself,
without a planner, in validation episodes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import tyro

from rhirl.costs import load_cost
from rhirl.experiments import RunDirectory
from rhirl.experiments.agents import PolicyAgent
from rhirl.experiments.evaluate import evaluate
from rhirl.experiments.explanations import explanation
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import configure
from rhirl.experiments.proposal import Apprentice
from rhirl.experiments.rehearse import Rehearsal
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.rl import Policy
from rhirl.tasks import get_task


def main(path: tyro.conf.Positional[Path], noise: float = 0.5, rounds: int = 100, episodes: int = 10) -> None:
    """Rehearse, and act."""
    run = RunDirectory(path)
    asked = run.config()
    task = get_task(asked.task)
    demos = find_demos(task.name, asked.noise, None, asked.episodes)
    config = replace(configure(task, asked.preset, ()), rehearsals=rounds)
    apprentice = Apprentice(demos, explanation(task, demos, print), 0, asked.seed, config.clone)
    apprentice.adopt(Policy.load(run.policy).actor)
    rehearsal = Rehearsal(task.simulator(), demos, config, apprentice.pairs(), load_cost(run.cost), asked.seed)
    state = rehearsal.begin(apprentice.state.actor, np.full(task.control_dim, noise))
    for i in range(rounds):
        state, report = rehearsal.round(state)
        if (i + 1) % 10 == 0:
            print(f"round {i + 1}: reward {report.reward:.3f}, lost {report.lost:.2f}", flush=True)
    apprentice.adopt(state.actor)
    for level in dict.fromkeys((noise, asked.noise)):
        seeds = episode_seeds(VALIDATION, asked.seed, episodes)
        returns = evaluate(task, PolicyAgent(apprentice.policy()), seeds, level)
        print(f"the proposal alone at σ = {level:g}: mean {returns.mean():.0f} of {np.round(returns).tolist()}")


if __name__ == "__main__":
    tyro.cli(main)
