"""Let a task's expert demonstrate."""

from __future__ import annotations

from collections.abc import Callable

from rhirl.demos import Demonstrations, collect
from rhirl.experiments.agents import expert_agent, expert_path
from rhirl.experiments.seeds import DEMONSTRATION, episode_seeds
from rhirl.tasks import Task


def demonstrate(
    task: Task, *, noise: float, episodes: int, seed: int = 0, progress: Callable[[int, float], None] | None = None
) -> Demonstrations:
    """Collect demonstrations of the task's bundled expert at control noise σ."""
    env = task.make_env()
    demos = collect(
        env,
        expert_agent(task, noise),
        task=task.name,
        source=f"{expert_path(task, noise).name}, deterministic",
        horizon=task.T,
        noise=noise,
        seeds=episode_seeds(DEMONSTRATION, seed, episodes),
        packages=task.packages,
        progress=progress,
    )
    env.close()
    return demos
