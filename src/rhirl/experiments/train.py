"""Train as people expect it: with progress, a log, checkpoints, a clean stop, and exact resume."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rhirl.demos import sha256
from rhirl.experiments.checkpoint import latest, save_checkpoint
from rhirl.experiments.evaluate import evaluate, scores, yardstick
from rhirl.experiments.interrupt import StoppedError, stop_requested
from rhirl.experiments.methods import Learner, get_method
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import build
from rhirl.experiments.run import RunConfig, RunDirectory, RunError
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.machine import surroundings
from rhirl.tasks import get_task

LOG_EVERY = 20
"""Iterations between two lines of the log. Checkpoints and stops happen there too, so that no line is ever lost."""
CHECKPOINTS, EVALUATION_EPISODES = 20, 5


@dataclass(frozen=True)
class Progress:
    """What a display may show after each logged stretch."""

    iteration: int
    iterations: int
    line: dict[str, Any]
    """The line of the log."""
    best: float | None
    """Best return evaluated so far."""


def train(
    run: RunDirectory,
    config: RunConfig,
    *,
    resume: bool = False,
    force: bool = False,
    show: Callable[[Progress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Learner:
    """Learn inside a run directory, whatever the method.

    Args:
        run: Where everything is written.
        config: What to do; when resuming, the run's own configuration is used.
        resume: Go on from the newest usable checkpoint.
        force: Accept demonstrations made with other simulator versions.
        show: Called after each logged stretch.
        warn: Called with what the person should know.
        note: Called with how far the preparations are.
    """
    if resume:
        config = run.config()
    elif run.exists():
        raise RunError(f"{run.path} holds a run already; go on with --resume, or choose another --out")
    task, method = get_task(config.task), get_method(config.method)
    path = None if config.demos == "bundled" else Path(config.demos)
    demos = find_demos(task.name, config.shown, path, config.episodes, force=force, controls=method.needs_controls)
    hyper = build(method.config, config.hyper)
    if method.prepare is not None:
        method.prepare(run, task, demos, hyper, note)
    learner = method.start(run, task, demos, hyper, config)
    if resume:
        _resume(run, learner, warn)
    else:
        # Before config.json, which makes it a run: whatever happens next, a run can be resumed.
        save_checkpoint(learner.state, run.checkpoints, 0)
        learned_from = sha256(path or task.demonstrations_path(config.shown))
        run.begin(config, {**surroundings(), "demos_sha256": learned_from, "device": str(jax.devices()[0])})

    agent_seeds = episode_seeds(VALIDATION, config.seed, EVALUATION_EPISODES)
    by = yardstick(task, agent_seeds, config.noise) if config.evaluations else None
    stops = _Schedule(learner.iterations, config.evaluations)
    best = max((line["eval/return"] for line in run.read_metrics() if "eval/return" in line), default=None)
    with closing(learner), stop_requested() as stop:
        while not learner.finished:
            began, before, metrics = time.perf_counter(), learner.executed, []
            target = min(learner.iteration + LOG_EVERY, learner.iterations)
            while learner.iteration < target and not learner.finished:
                metrics.append(learner.step())
            iteration, line = learner.iteration, learner.line(metrics)
            line["time/steps_per_s"] = (learner.executed - before) / (time.perf_counter() - began)
            if by is not None and (stops.evaluate(iteration) or learner.finished):
                returns = evaluate(task, learner.agent(), agent_seeds, config.noise)
                line |= {
                    "eval/return": float(returns.mean()),
                    "eval/score": scores(task, returns, by)["score"],
                }
                best = max(line["eval/return"], -np.inf if best is None else best)
            run.append_metrics(line)
            stopping = stop()  # asked once: a request while this is being saved is heard the next time
            if stops.checkpoint(iteration) or learner.finished or stopping:
                learner.save(run)
                save_checkpoint(learner.state, run.checkpoints, iteration)
            # Who finds nothing to rehearse is done before all iterations are.
            show(Progress(iteration, iteration if learner.finished else learner.iterations, line, best))
            if stopping and not learner.finished:
                raise StoppedError(f"stopped at iteration {iteration} of {learner.iterations}; everything is saved")
    return learner


class _Schedule:
    """Spreads evaluations and checkpoints evenly over the run, on the log's grid."""

    def __init__(self, iterations: int, evaluations: int) -> None:
        self.iterations = iterations
        self.evaluations = evaluations

    def evaluate(self, iteration: int) -> bool:
        return self._due(iteration, self.evaluations)

    def checkpoint(self, iteration: int) -> bool:
        return self._due(iteration, CHECKPOINTS)

    def _due(self, iteration: int, times: int) -> bool:
        """Whether a multiple of 1/times of the run was passed in the last logged stretch."""
        before = max(0, iteration - LOG_EVERY) * times // self.iterations
        return iteration == self.iterations or iteration * times // self.iterations > before


def _resume(run: RunDirectory, learner: Learner, warn: Callable[[str], None]) -> None:
    state, path, refused = latest(run.checkpoints, learner.state)
    for error in refused:
        warn(f"{error}; using {path.name} instead")
    learner.restore(state)
    run.rewind_metrics(learner.iteration)
