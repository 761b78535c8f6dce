"""Is a model that is cheap to plan with still the same animal? Let the expert act on it and see how long he lasts.

    python benchmarks/expert_on_models.py hopper --models implicitfast:1
    python benchmarks/expert_on_models.py walker2d --models RK4:1
    python benchmarks/expert_on_models.py ant27 --models implicitfast:2 implicitfast:5 RK4:2 RK4:3

A model is an integrator and its substeps per environment step, whose length stays. Episodes are validation episodes
cut at 100 steps. Nothing here is a score. Results: results/bench/expert-on-models.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from rhirl.demos import run_episode
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.machine import surroundings
from rhirl.simulators.mujoco_engine import INTEGRATORS
from rhirl.tasks import get_task

RESULTS = Path(__file__).parent.parent / "results/bench/expert-on-models.json"
LEVELS = (0.0, 0.2, 0.5)


def main(
    name: tyro.conf.Positional[str], /, models: tuple[str, ...] = (), episodes: int = 100, steps: int = 100
) -> None:
    """Compare a task's own model with others, at every noise level; other tasks' rows stay as they are."""
    before = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    rows = [measure(name, model, noise, episodes, steps) for noise in LEVELS for model in (None, *models)]
    kept = [row for row in before if row["task"] != name]
    RESULTS.write_text(json.dumps({"rows": kept + rows, **surroundings()}, indent=1) + "\n")


def measure(name: str, model: str | None, noise: float, episodes: int, steps: int) -> dict[str, Any]:
    """Let the expert act for so many steps, or until the task ends."""
    task = get_task(name)
    env: Any = task.make_scored_env()
    if model is not None:
        integrator, substeps = model.split(":")
        inner = env.unwrapped
        inner.model.opt.timestep *= inner.frame_skip / int(substeps)
        inner.model.opt.integrator = INTEGRATORS[integrator]
        inner.frame_skip = int(substeps)
    agent, seeds = expert_agent(task, noise), episode_seeds(VALIDATION, 0, episodes)
    acted = [run_episode(env, agent, horizon=steps, noise=noise, seed=seed) for seed in seeds]
    row = {
        "task": name,
        "model": model or "its own",
        "noise": noise,
        "episodes": episodes,
        "steps": steps,
        "ended": float(np.mean([len(episode.controls) < steps for episode in acted])),
        "return_mean": round(float(np.mean([episode.total for episode in acted])), 1),
    }
    print(row, flush=True)
    return row


if __name__ == "__main__":
    tyro.cli(main)
