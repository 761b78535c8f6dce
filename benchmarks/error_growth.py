"""Measure how the error of the state distribution grows with the length T, for RHIRL and behaviour cloning.

    rhirl grid table1 --seeds 3                      the runs (only those of the task are needed)
    python benchmarks/error_growth.py pendulum       writes results/error_growth/error_growth.json
    rhirl figure error-growth                        draws it

Learned controllers and the expert act from different starts. The distance between two sets of expert episodes, the
work of sampling alone, is written down as `floor`. An episode that has ended stays where it ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

from rhirl.demos import Agent, run_episode
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.evaluate import load_agent
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import EVALUATION, episode_seeds
from rhirl.experiments.tables.error_growth import exponent_interval, growth_exponent, summed_error, wasserstein
from rhirl.machine import surroundings
from rhirl.tasks import Task, get_task

RESULTS = Path(__file__).parent.parent / "results"


def main(
    task: tyro.conf.Positional[str] = "pendulum",
    /,
    methods: tuple[str, ...] = ("rhirl", "bc"),
    seeds: int = 3,
    episodes: int = 30,
    length: int | None = None,
) -> None:
    """Measure one task.

    Args:
        task: The task's name.
        methods: Folders of runs under results/runs/TASK.
        seeds: Runs of each method.
        episodes: Episodes of each run; the expert acts in as many as all runs of a method together.
        length: Steps of an episode; by default the task's T.
    """
    benchmark = get_task(task)
    steps = length or benchmark.T
    blocks = iter(range(1_000, 2_000))  # blocks of evaluation seeds that no published number uses
    expert, again = (
        np.concatenate([_episodes(benchmark, expert_agent(benchmark), steps, episodes, block) for block in some])
        for some in (_take(blocks, seeds), _take(blocks, seeds))
    )
    found: dict[str, dict[str, Any]] = {}
    for method in methods:
        runs = [RunDirectory(RESULTS / "runs" / task / method / "noise0" / f"seed{seed}") for seed in range(seeds)]
        agents = [load_agent(run)[1] for run in runs]
        learned = [_episodes(benchmark, agent, steps, episodes, next(blocks)) for agent in agents]
        found[method] = _summary(np.concatenate(learned), expert, again)
        print(f"{method}: T^{found[method]['exponent']:.2f} {found[method]['exponent_interval']}")
    facts = {
        "task": task,
        "length": steps,
        "seeds": seeds,
        "episodes": episodes,
        "floor": wasserstein(again, expert).round(5).tolist(),
        "methods": found,
        **surroundings(),
    }
    target = RESULTS / "error_growth" / "error_growth.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(facts, indent=1) + "\n")


def _take(blocks: Iterator[int], count: int) -> list[int]:
    return [next(blocks) for _ in range(count)]


def _episodes(task: Task, agent: Agent, steps: int, episodes: int, block: int) -> NDArray[np.float64]:
    """Observations (episodes, steps + 1, n)."""
    env = task.make_env()
    found = np.empty((episodes, steps + 1, task.observation_dim))
    for i, seed in enumerate(episode_seeds(EVALUATION, block, episodes)):
        x = run_episode(env, agent, horizon=steps, noise=0.0, seed=seed).observations
        found[i, : len(x)], found[i, len(x) :] = x, x[-1]
    env.close()
    return found


def _summary(
    learned: NDArray[np.float64], expert: NDArray[np.float64], again: NDArray[np.float64]
) -> dict[str, Any]:
    total = summed_error(learned, expert, again)
    return {
        "error": wasserstein(learned, expert).round(5).tolist(),
        "total": total.round(5).tolist(),
        "exponent": growth_exponent(total),
        "exponent_interval": exponent_interval(learned, expert, again),
    }


if __name__ == "__main__":
    tyro.cli(main)
