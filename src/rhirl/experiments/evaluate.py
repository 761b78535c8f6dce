"""Score an agent or a finished run in the plain Gymnasium environment, with its own reward and termination."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.demos import Agent, run_episode
from rhirl.experiments.agents import RandomAgent, expert_agent
from rhirl.experiments.methods import get_method
from rhirl.experiments.presets import build
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import EVALUATION, episode_seeds
from rhirl.machine import side_by_side, surroundings
from rhirl.tasks import Task, get_task

Progress = Callable[[int, float], None]


def evaluate(
    task: Task, agent: Agent, seeds: Iterable[int], noise: float = 0.0, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Return the agent's return in one episode per seed."""
    env = task.make_scored_env()
    returns = []
    for i, seed in enumerate(seeds):
        returns.append(run_episode(env, agent, horizon=task.T, noise=noise, seed=seed).total)
        if progress is not None:
            progress(i, returns[-1])
    env.close()
    return np.array(returns)


def load_agent(run: RunDirectory) -> tuple[Task, Agent]:
    """Make the agent a run has learned."""
    config = run.config()
    task, method = get_task(config.task), get_method(config.method)
    return task, method.load(task, run, build(method.config, config.hyper), config.seed)


def evaluate_run(
    run: RunDirectory,
    *,
    episodes: int = 50,
    noise: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    policy: RunDirectory | None = None,
    workers: int = 1,
) -> dict[str, Any]:
    """Evaluate a run on seeds that training never saw, and keep the result in the run's `eval/` folder.

    Args:
        run: The run.
        episodes: How many episodes.
        noise: Standard deviation σ of the control noise; by default that of the run's demonstrations.
        seed: Which block of evaluation seeds.
        progress: Called after each episode.
        policy: The run of a policy that was optimised anew for this run's cost, to be evaluated in its place.
        workers: Processes that share the episodes, a core to each. No episode knows of another one, so the returns
            are those of one process.
    """
    if workers < 1:
        raise ValueError(f"workers must be 1 or more, not {workers}")
    config, acting = run.config(), policy or run
    level = config.noise if noise is None else noise
    seeds = episode_seeds(EVALUATION, seed, episodes)
    if workers == 1:
        returns = evaluate(get_task(config.task), load_agent(acting)[1], seeds, level, progress)
    else:
        episode = partial(episode_return, acting.path, level)
        returns = np.array(side_by_side(episode, seeds, workers, progress or (lambda count, total: None)))
    return keep_evaluation(run, returns, level, seed, reoptimised=policy is not None)


def keep_evaluation(
    run: RunDirectory, returns: NDArray[np.float64], noise: float, seed: int, *, reoptimised: bool = False
) -> dict[str, Any]:
    """Compare the returns of a block of evaluation seeds with the expert's there, and write them down."""
    config, episodes = run.config(), len(returns)
    task = get_task(config.task)
    result = {
        "task": task.name,
        "method": config.method,
        "preset": config.preset,
        "noise": noise,
        "learned_at_noise": config.noise,
        "run_seed": config.seed,
        "reoptimised": reoptimised,
        "episodes": episodes,
        "seed": seed,
        **scores(task, returns, yardstick(task, episode_seeds(EVALUATION, seed, episodes), noise)),
        "returns": returns.tolist(),
        **surroundings(),
    }
    anew = "-reoptimised" if reoptimised else ""
    run.write_json(f"eval/noise{noise:g}-seed{seed}{anew}.json", result)
    return result


def episode_return(path: Path, noise: float, seed: int) -> float:
    """Run one episode of a run, in a process that keeps its agent for the next."""
    task, agent = _loaded(path)
    return float(evaluate(task, agent, [seed], noise)[0])


@cache
def _loaded(path: Path) -> tuple[Task, Agent]:
    return load_agent(RunDirectory(path))


class Yardstick(NamedTuple):
    """What the expert and a random agent achieve in the very same episodes, which is what a score is relative to.

    Starts differ in difficulty: Pendulum's returns vary by ±80 with the start alone. Comparing on the same starts
    and the same noise takes the luck of the draw out of the score.
    """

    expert: float
    random: float


def yardstick(task: Task, seeds: Sequence[int], noise: float) -> Yardstick:
    """Run the expert and a random agent in these episodes."""
    agents = (expert_agent(task, noise), RandomAgent(task.control_dim))
    return Yardstick(*(float(evaluate(task, agent, seeds, noise).mean()) for agent in agents))


def scores(task: Task, returns: NDArray[np.float64], by: Yardstick) -> dict[str, float]:
    """Compare returns with the expert's and a random agent's."""
    mean = float(returns.mean())
    return {
        "return_mean": mean,
        "return_std": float(returns.std()),
        "expert_return": by.expert,
        "random_return": by.random,
        "ratio": task.ratio(mean, by.expert),
        "score": (mean - by.random) / (by.expert - by.random),
    }


def references(task: str) -> dict[str, dict[str, float]]:
    """Read the mean returns of the expert and of a random agent over many episodes, by noise level."""
    table = json.loads(Path(str(files("rhirl.tasks"))).joinpath("references.json").read_text())
    if task not in table:
        raise KeyError(f"no reference returns of {task}: measure them with benchmarks/references.py")
    return table[task]
