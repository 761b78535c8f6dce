"""Runs of one method on one task, learned side by side: their updates are one compiled call under `jax.vmap`."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rhirl.atomic import write_atomically
from rhirl.baselines.lesson import Experts, Lesson
from rhirl.baselines.practice import practise, teach
from rhirl.demos import bundled_path, sha256
from rhirl.experiments import RunDirectory
from rhirl.experiments.agents import PolicyAgent
from rhirl.experiments.checkpoint import latest, save_checkpoint
from rhirl.experiments.evaluate import Yardstick, evaluate, scores, yardstick
from rhirl.experiments.methods import get_method
from rhirl.experiments.methods.rivals import Imitating
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import build
from rhirl.experiments.run import RunConfig
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.experiments.train import EVALUATION_EPISODES, LOG_EVERY
from rhirl.machine import surroundings
from rhirl.rl import Policy, to_numpy
from rhirl.rl.replay import insert
from rhirl.tasks import get_task
from rival_cells import Cell


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2, 3))
def practise_all(method: Any, config: Any, learners: Any, averages: Any, replays: Any, parameters: Any) -> Any:
    """`practise` for runs side by side."""
    return jax.vmap(partial(practise, method, config))(learners, averages, replays, parameters)


@partial(jax.jit, static_argnums=(0, 1))
def teach_all(method: Any, config: Any, parameters: Any, lessons: Any, keys: Any) -> Any:
    """`teach` for runs side by side."""
    return jax.vmap(partial(teach, method, config))(parameters, lessons, keys)


insert_all = jax.jit(jax.vmap(insert), donate_argnums=0)
split_all = jax.jit(jax.vmap(jax.random.split))


def stack(trees: Sequence[Any]) -> Any:
    """Lay equal pytrees out as one with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def part(tree: Any, i: int) -> Any:
    """Take the i-th tree out again."""
    return jax.tree.map(lambda leaf: leaf[i], tree)


def same_length(experts: Sequence[Experts]) -> list[Experts]:
    """Append transitions that are never drawn where demonstrations have fewer steps than others."""
    most = max(int(e.steps) for e in experts)

    def padded(column: jax.Array) -> jax.Array:
        return jnp.resize(column, (most, *column.shape[1:]))

    return [e._replace(transitions=jax.tree.map(padded, e.transitions)) for e in experts]


@cache
def measure(task: str, seeds: tuple[int, ...], noise: float) -> Yardstick:
    """Run expert and random agent once for all policies that are scored in the same episodes."""
    return yardstick(get_task(task), seeds, noise)


def judge(pipe: Any) -> None:
    """Score policies that come through a pipe, until it closes."""
    while True:
        try:
            name, actor, seeds, noise, tag = pipe.recv()
        except EOFError:
            return
        task = get_task(name)
        returns = evaluate(task, PolicyAgent(Policy(actor)), seeds, noise)
        found = scores(task, returns, measure(name, seeds, noise))
        pipe.send((tag, {"eval/return": found["return_mean"], "eval/score": found["score"]}))


class Fleet:
    """Runs of one method on one task, learned side by side."""

    def __init__(self, group: Sequence[Cell], state: Path) -> None:
        self.name = group[0].group
        self.runs: list[RunDirectory] = []
        self.asked: list[RunConfig] = []
        self.learners: list[Imitating] = []
        self.lines: list[list[dict[str, Any]]] = []
        for cell in group:
            run, asked = cell.plan(state)
            self._begin(cell, run, asked, state)
        self.imitators = [learner.imitator for learner in self.learners]
        first = self.imitators[0]
        self.kind, self.config = type(first), first.config
        self.learner = stack([i.learner for i in self.imitators])
        self.average = stack([i.average for i in self.imitators])
        self.replay = stack([i.replay for i in self.imitators])
        self.parameters = stack([i.parameters for i in self.imitators])
        self.keys = jnp.stack([i.key for i in self.imitators])
        self.experts = stack(same_length([i.experts for i in self.imitators]))
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        multiprocessing.get_context("spawn").Process(target=judge, args=(theirs,), daemon=True).start()
        self.pipe, self.waiting = ours, 0

    def _begin(self, cell: Cell, run: RunDirectory, asked: RunConfig, state: Path) -> None:
        task, method = get_task(asked.task), get_method(asked.method)
        if run.exists():
            asked = run.config()
        elif cell.onto is not None:
            run.path.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(cell.learned(state).cost, run.cost)
        demos = find_demos(task.name, asked.noise, episodes=asked.episodes, controls=method.needs_controls)
        learner = method.start(run, task, demos, build(method.config, asked.hyper), asked)
        assert isinstance(learner, Imitating)
        if run.exists():
            learner.restore(latest(run.checkpoints, learner.state)[0])
            run.rewind_metrics(learner.iteration)
        else:
            digest = sha256(bundled_path(task.name, asked.noise))
            run.begin(asked, {**surroundings(), "demos_sha256": digest, "device": str(jax.devices()[0])})
        self.runs.append(run)
        self.asked.append(asked)
        self.learners.append(learner)
        self.lines.append(run.read_metrics())

    def step(self) -> dict[str, Any]:
        """Make one iteration of every run, in the order of `Imitator.step`."""
        exploring = self.imitators[0].exploring
        actors = None if exploring else to_numpy(self.learner.actor)
        for i, imitator in enumerate(self.imitators):
            imitator.ask(None if actors is None else part(actors, i))
        metrics: dict[str, Any] = {}
        if not exploring:
            self.learner, self.average, metrics = practise_all(
                self.kind, self.config, self.learner, self.average, self.replay, self.parameters
            )
        self.replay = insert_all(self.replay, jnp.asarray(np.stack([i.take() for i in self.imitators])))
        if not exploring and self.imitators[0].iteration % self.config.every == 0:
            keys = split_all(self.keys)
            self.keys = keys[:, 0]
            self.parameters, learned = teach_all(
                self.kind, self.config, self.parameters, self._lessons(), keys[:, 1]
            )
            metrics |= learned
        return metrics

    def _lessons(self) -> Lesson:
        """Lay out what the costs may learn from; all of it is on the device but the episodes."""
        finished = np.stack([i.episodes.finished for i in self.imitators])
        available = [min(int(i.episodes.total), finished.shape[1]) for i in self.imitators]
        episodes = (jnp.asarray(finished), jnp.asarray(available))
        return Lesson(self.experts, self.replay, self.learner.actor, *episodes)

    def train(self, deadline: float) -> bool:
        """Iterate until all is done or time is up; `deadline` in time.monotonic()."""
        began, total = time.monotonic(), self.learners[0].iterations
        while self.learners[0].iteration < total and time.monotonic() < deadline:
            metrics = [self.step() for _ in range(min(LOG_EVERY, total - self.learners[0].iteration))]
            iteration, now = self.learners[0].iteration, time.monotonic()
            self._log(metrics, len(metrics) * self.config.iteration_steps / (now - began))
            began = now
            before = (iteration - len(metrics)) * RunConfig.evaluations // total
            if iteration * RunConfig.evaluations // total > before:
                self._ask_for_judgement(iteration)
                where = f"{self.name} {iteration}/{total}"
                last = [line[-1] for line in self.lines]
                reward = np.round([line.get("train/reward", 0.0) for line in last], 2)
                print(f"{where} at {last[0]['time/steps_per_s']:.0f} steps/s, reward {reward}", flush=True)
            self._hear()
        while self.waiting:
            self._hear(wait=True)
        return self.learners[0].iteration >= total

    def save(self, finished: bool) -> None:
        """Write everything back into the run directories; checkpoints only where they are still needed."""
        self._return()
        for i, (run, learner) in enumerate(zip(self.runs, self.learners, strict=True)):
            write_atomically(run.metrics, "".join(json.dumps(line) + "\n" for line in self.lines[i]).encode())
            learner.save(run)
            if not finished:
                learner.imitator.replay, learner.imitator.key = part(self.replay, i), self.keys[i]
                save_checkpoint(learner.state, run.checkpoints, learner.iteration)
            else:
                shutil.rmtree(run.checkpoints, ignore_errors=True)

    def _return(self) -> None:
        """Hand the runs what they have learned, as NumPy arrays."""
        learners, averages, parameters = jax.device_get((self.learner, self.average, self.parameters))
        for i, imitator in enumerate(self.imitators):
            imitator.learner, imitator.average = part(learners, i), part(averages, i)
            imitator.parameters = part(parameters, i)

    def _log(self, metrics: Sequence[dict[str, Any]], speed: float) -> None:
        self._return()
        metrics = jax.device_get(metrics)
        for i, learner in enumerate(self.learners):
            line = learner.line([{name: value[i] for name, value in m.items()} for m in metrics])
            self.lines[i].append({**line, "time/steps_per_s": speed})

    def _ask_for_judgement(self, iteration: int) -> None:
        for i, asked in enumerate(self.asked):
            seeds = tuple(episode_seeds(VALIDATION, asked.seed, EVALUATION_EPISODES))
            actor = to_numpy(self.imitators[i].average)
            self.pipe.send((asked.task, actor, seeds, asked.noise, (i, iteration)))
            self.waiting += 1

    def _hear(self, wait: bool = False) -> None:
        """Note the judgements that have arrived in the lines they belong to."""
        while self.waiting and (wait or self.pipe.poll()):
            (i, iteration), found = self.pipe.recv()
            self.waiting, wait = self.waiting - 1, False
            next(line for line in self.lines[i] if line["iteration"] == iteration).update(found)
            where = f"{self.name} {iteration}, σ = {self.asked[i].noise:g}, seed {self.asked[i].seed}"
            print(f"{where}: return {found['eval/return']:.0f}", flush=True)
