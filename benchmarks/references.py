"""Measure what the expert and a random agent achieve, which every score is relative to.

    python benchmarks/references.py pendulum --episodes 500

Writes raw returns to results/references/<task>.json and their means to src/rhirl/tasks/references.json. Noise
levels that are not asked for stay as they were.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tyro

from rhirl.demos import Agent
from rhirl.experiments.agents import RandomAgent, expert_agent
from rhirl.experiments.evaluate import evaluate
from rhirl.experiments.seeds import REFERENCE, episode_seeds
from rhirl.machine import surroundings
from rhirl.tasks import get_task

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src/rhirl/tasks/references.json"


def main(
    task: tyro.conf.Positional[str], /, episodes: int = 100, noises: tuple[float, ...] = (0.0, 0.2, 0.5)
) -> None:
    """Measure one task."""
    benchmark = get_task(task)
    seeds = episode_seeds(REFERENCE, 0, episodes)

    def returns_of(name: str, noise: float) -> list[float]:
        random = RandomAgent(benchmark.control_dim)
        agent: Agent = expert_agent(benchmark, noise) if name == "expert" else random
        return evaluate(benchmark, agent, seeds, noise).tolist()

    returns = {name: {f"{noise:g}": returns_of(name, noise) for noise in noises} for name in ("expert", "random")}
    keep(task, returns)


def keep(task: str, returns: dict[str, dict[str, list[float]]]) -> None:
    """Write raw returns, by agent and noise level, and their means, beside those of other levels."""
    raw = ROOT / "results/references" / f"{task}.json"
    raw.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(raw.read_text())["returns"] if raw.exists() else {}
    returns = {name: known.get(name, {}) | levels for name, levels in returns.items()}
    episodes = min(len(values) for levels in returns.values() for values in levels.values())
    raw.write_text(json.dumps({"task": task, "episodes": episodes, "returns": returns, **surroundings()}) + "\n")
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    table[task] = {
        name: {noise: round(float(np.mean(values)), 2) for noise, values in levels.items()}
        for name, levels in returns.items()
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
