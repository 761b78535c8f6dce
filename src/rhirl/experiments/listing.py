"""The list of tasks, with the scores to compare with."""

from __future__ import annotations

from typing import Any

from rhirl.experiments.evaluate import references
from rhirl.tasks import TASKS


def task_table() -> list[dict[str, Any]]:
    """One row per task."""
    rows = []
    for task in TASKS.values():
        try:
            measured: dict[str, dict[str, float]] = references(task.name)
        except KeyError:
            measured = {"expert": {}, "random": {}}
        rows.append(
            {
                "task": task.name,
                "env_id": task.env_id,
                "observation_dim": task.observation_dim,
                "control_dim": task.control_dim,
                "T": task.T,
                "expert_return": measured["expert"].get("0"),
                "random_return": measured["random"].get("0"),
                "paper_expert": task.paper.get("expert", {}).get("0"),
                "paper_rhirl": task.paper.get("rhirl", {}).get("0"),
                "paper_ratio": task.paper_ratio("rhirl", 0.0),
                "presets": {name: dict(preset) for name, preset in task.presets.items()},
            }
        )
    return rows
