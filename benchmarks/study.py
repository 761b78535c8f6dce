"""Learn with a variant of a preset, act with it in validation episodes, and keep what came of it.

    python benchmarks/study.py hopper --seconds 330 --set starts=0.5 planner.M=50 --length 500

One run is one row of an ablation: `results/studies/<task>.json` collects them. Episodes may be cut at `length`,
where falls and speed already show; the expert is measured over the same steps.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from rhirl.demos import run_episode
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.methods.ours import planning_agent
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import configure, to_dict
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.learning import RHIRL
from rhirl.machine import surroundings
from rhirl.proposals import learn_proposal
from rhirl.tasks import get_task

RESULTS = Path(__file__).parent.parent / "results/studies"


def main(
    task: tyro.conf.Positional[str],
    /,
    preset: str = "default",
    set: tuple[str, ...] = (),
    noise: float = 0.0,
    seed: int = 0,
    demonstrations: int = 10,
    seconds: float = float("inf"),
    episodes: int = 3,
    length: int | None = None,
    name: Annotated[str, tyro.conf.arg(help="What the row is called.")] = "variant",
) -> None:
    """Learn until the preset's iterations or the seconds are over, then act."""
    benchmark = get_task(task)
    config = configure(benchmark, preset, set)
    simulator = benchmark.simulator()
    demos = find_demos(task, noise, None, demonstrations)
    proposal = learn_proposal(simulator, demos, seed=seed).act if config.guided else None
    learner = RHIRL(simulator, demos, config, noise=noise, seed=seed, proposal=proposal)
    began = time.perf_counter()
    while learner.state.iteration < config.iterations and time.perf_counter() - began < seconds:
        learner.step()
    row: dict[str, Any] = {
        "name": name,
        "task": task,
        "noise": noise,
        "seed": seed,
        "settings": list(set),
        "updates": int(learner.state.iteration),
        "seconds": round(time.perf_counter() - began, 1),
        "simulated": int(learner.state.simulated),
    }
    env, horizon = benchmark.make_env(), length or benchmark.T
    planner = planning_agent(simulator, learner.learned_cost, config, seed, proposal)
    for who, agent in {"agent": planner, "expert": expert_agent(benchmark, noise)}.items():
        runs = [
            run_episode(env, agent, horizon=horizon, noise=noise, seed=s)
            for s in episode_seeds(VALIDATION, seed, episodes)
        ]
        row[f"{who}_returns"] = [round(float(run.total), 1) for run in runs]
        row[f"{who}_steps"] = [len(run.observations) - 1 for run in runs]
    row["ratio"] = round(benchmark.ratio(np.mean(row["agent_returns"]), np.mean(row["expert_returns"])), 3)
    _append(RESULTS / f"{task}.json", {**row, "length": horizon, "hyper": to_dict(config), **surroundings()})
    print(json.dumps(row))


def _append(path: Path, row: dict[str, Any]) -> None:
    rows = json.loads(path.read_text()) if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([*rows, row], indent=1) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
