"""Ask how much there is above an expert: in every episode, take the better of expert and learned controller.

    python benchmarks/ceiling.py lunar_lander

A start decides most of a return: how far a lander has to fall, how fast it drifts. Who would choose in hindsight,
start by start, whether the expert acts or what was learned from it, is better than both, and still not much better
than the expert if the expert is good. Reads the raw returns of `results/runs` and plays the expert in the same
episodes; and so it does with a policy that was told the reward and trained inside the noise, where there is one
(`results/bench/trained-inside`, made by `benchmarks/train_experts.py --tasks lunar_lander@0.5`). Written to
`results/bench/ceiling-TASK.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from rhirl.experiments import evaluate
from rhirl.experiments.agents import PolicyAgent, expert_agent
from rhirl.experiments.seeds import EVALUATION, episode_seeds
from rhirl.machine.versions import surroundings
from rhirl.rl import Policy
from rhirl.tasks import Task, get_task

RESULTS = Path(__file__).parent.parent / "results"


def row(task: Task, noise: float) -> dict[str, Any]:
    """Compare expert and learned controller episode by episode, over all seeds at a noise level."""
    ours, experts, insiders = [], [], []
    inside = RESULTS / f"bench/trained-inside/{task.name}-noise{noise:g}.policy.safetensors"
    runs = RESULTS / f"runs/{task.name}/rhirl/noise{noise:g}"
    for path in sorted(runs.glob(f"seed*/eval/noise{noise:g}-*.json")):
        found = json.loads(path.read_text())
        if not found["reoptimised"]:
            seeds = episode_seeds(EVALUATION, found["seed"], found["episodes"])
            ours.append(np.array(found["returns"]))
            experts.append(evaluate(task, expert_agent(task, noise), seeds, noise))
            if inside.exists():
                insiders.append(evaluate(task, PolicyAgent(Policy.load(inside)), seeds, noise))
    learned, expert = np.concatenate(ours), np.concatenate(experts)
    better = np.maximum(learned, expert)
    trained = np.concatenate(insiders) if insiders else None
    return {
        "noise": noise,
        "episodes": len(expert),
        "expert": float(expert.mean()),
        "learned": float(learned.mean()),
        "better_of_both": float(better.mean()),
        "ratio_of_better": float(better.mean() / expert.mean()),
        "largest_of_expert": float(expert.max()),
        "trained_inside": None if trained is None else float(trained.mean()),
        "ratio_of_trained_inside": None if trained is None else float(trained.mean() / expert.mean()),
        "expert_returns": expert.round(2).tolist(),
    }


def main(task: tyro.conf.Positional[str], /, noises: tuple[float, ...] = (0.0, 0.2, 0.5)) -> None:
    """Write a row for every noise level."""
    rows = [row(get_task(task), noise) for noise in noises]
    for line in rows:
        print({name: value for name, value in line.items() if name != "expert_returns"})
    text = json.dumps({"command": f"python benchmarks/ceiling.py {task}", "rows": rows, **surroundings()}, indent=1)
    (RESULTS / f"bench/ceiling-{task}.json").write_text(text + "\n")


if __name__ == "__main__":
    tyro.cli(main)
