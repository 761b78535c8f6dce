"""Train the rivals as fast as one machine allows: all seeds and noise levels of a method side by side on one GPU.

    python benchmarks/baselines.py hopper/firl,gail,airl/0,0.5/0,1,2 --state /tmp/rivals --out runs.tar.gz

A word TASK/METHODS/NOISES/SEEDS stands for runs; `0:0.5` in the place of a noise level re-optimises the cost
learned at 0 under 0.5, and `gail+reward=negative` in the place of a method changes its settings. The runs of a
method on a task share one process: their environments are stepped in a process each, and their updates are one
compiled call under `jax.vmap`, so that a GPU has hardly more to do for six runs than for one. Everything else is
that of `rhirl train`: presets, the order of events, the run directory.

Runs live in `--state`, with checkpoints, and go on there when called again. Those that are finished are evaluated
on 50 episodes, at their own noise and, where they learned without any, at that of `--levels` too. Written to
`--out`, one archive: the run directories without their checkpoints, and `baselines.json` with every score.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rhirl.baselines.imitation import Experts, Lesson, practise, teach
from rhirl.demos import bundled_path, sha256
from rhirl.experiments import RunDirectory, evaluate_run
from rhirl.experiments import train as train_run
from rhirl.experiments.agents import PolicyAgent
from rhirl.experiments.checkpoint import latest, save_checkpoint
from rhirl.experiments.evaluate import evaluate
from rhirl.experiments.methods import Imitating, get_method
from rhirl.experiments.plan import find_demos, plan_run
from rhirl.experiments.presets import build
from rhirl.experiments.reoptimise import plan_reoptimisation
from rhirl.experiments.run import RunConfig, surroundings
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.experiments.train import EVALUATION_EPISODES, LOG_EVERY
from rhirl.rl import Policy, to_numpy
from rhirl.rl.replay import insert
from rhirl.tasks import get_task

DEMONSTRATIONS, EPISODES = 10, 50


@dataclass(frozen=True)
class Cell:
    """One run."""

    task: str
    method: str
    noise: float
    seed: int
    onto: float | None = None
    """The noise under which the cost learned at `noise` is re-optimised."""
    settings: tuple[str, ...] = ()
    """What is changed, as after `rhirl train --set`."""

    @property
    def label(self) -> str:
        """The method, with what is changed."""
        return "-".join((self.method, *self.settings))

    def learned(self, root: Path) -> RunDirectory:
        """Where the run lies that learns."""
        return RunDirectory(root / self.task / self.label / f"noise{self.noise:g}" / f"seed{self.seed}")

    @property
    def group(self) -> str:
        """The process it belongs to."""
        return f"{self.task}/{self.label}{'' if self.onto is None else '-reoptimised'}"

    def home(self, root: Path) -> RunDirectory:
        """Where this run lies."""
        learned = self.learned(root)
        return learned if self.onto is None else RunDirectory(learned.path / "reoptimised" / f"noise{self.onto:g}")

    def finished(self, root: Path) -> bool:
        """Whether nothing is left to learn."""
        home = self.home(root)
        return home.policy.exists() and not home.checkpoints.exists()

    def plan(self, root: Path) -> tuple[RunDirectory, RunConfig]:
        """Where this run lies, and what it does."""
        if self.onto is not None:
            return plan_reoptimisation(self.learned(root), self.onto)
        config = plan_run(
            self.task, self.method, self.noise, self.seed, episodes=DEMONSTRATIONS, overrides=self.settings
        )
        return self.learned(root), config


def cells(word: str) -> Iterator[Cell]:
    """Read TASK/METHODS/NOISES/SEEDS."""
    task, methods, noises, seeds = word.split("/")
    for label, noise, seed in product(methods.split(","), noises.split(","), seeds.split(",")):
        method, *settings = label.split("+")
        learned, _, onto = noise.partition(":")
        yield Cell(task, method, float(learned), int(seed), float(onto) if onto else None, tuple(settings))


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


def judge(pipe: Any) -> None:
    """Evaluate policies that come through a pipe, until it closes."""
    while True:
        try:
            task, actor, seeds, noise, tag = pipe.recv()
        except EOFError:
            return
        pipe.send((tag, evaluate(get_task(task), PolicyAgent(Policy(actor)), seeds, noise).mean()))


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
        began, first = time.monotonic(), self.learners[0].iteration
        total = self.learners[0].iterations
        while self.learners[0].iteration < total and time.monotonic() < deadline:
            metrics = [self.step() for _ in range(min(LOG_EVERY, total - self.learners[0].iteration))]
            iteration = self.learners[0].iteration
            self._log(metrics, (iteration - first) * self.config.iteration_steps / (time.monotonic() - began))
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
            run.metrics.write_text("".join(json.dumps(line) + "\n" for line in self.lines[i]))
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
            seeds = episode_seeds(VALIDATION, asked.seed, EVALUATION_EPISODES)
            actor = to_numpy(self.imitators[i].average)
            self.pipe.send((asked.task, actor, seeds, asked.noise, (i, iteration)))
            self.waiting += 1

    def _hear(self, wait: bool = False) -> None:
        """Note the judgements that have arrived in the lines they belong to."""
        while self.waiting and (wait or self.pipe.poll()):
            (i, iteration), value = self.pipe.recv()
            self.waiting, wait = self.waiting - 1, False
            next(line for line in self.lines[i] if line["iteration"] == iteration)["eval/return"] = float(value)
            where = f"{self.name} {iteration}, σ = {self.asked[i].noise:g}, seed {self.asked[i].seed}"
            print(f"{where}: return {value:.0f}", flush=True)


def work(group: Sequence[Cell], options: argparse.Namespace, deadline: float) -> None:
    """Do the runs of one method on one task, in this process."""
    began = time.monotonic()
    fleet = Fleet(group, options.state)
    try:
        finished = fleet.train(deadline)
        fleet.save(finished)
    finally:
        for learner in fleet.learners:
            learner.close()
    spent, steps = time.monotonic() - began, fleet.learners[0].executed
    what = f"{fleet.name}: {len(group)} runs of {steps} steps in {spent:.0f} s"
    print(f"{what}, {'finished' if finished else 'TO BE CONTINUED'} on {jax.devices()[0]}", flush=True)


def clone(cell: Cell, state: Path) -> None:
    """Behaviour cloning needs neither environments nor a fleet."""
    run, config = cell.plan(state)
    if not cell.finished(state):
        train_run(run, config, resume=run.exists())
        shutil.rmtree(run.checkpoints)


def score(cell: Cell, level: float, state: Path) -> dict[str, Any] | None:
    """Evaluate a finished run at a noise level, where that was not done."""
    if not cell.finished(state):
        return None
    learned, anew = cell.learned(state), "" if cell.onto is None else "-reoptimised"
    path = learned.path / f"eval/noise{level:g}-seed{cell.seed}{anew}.json"
    if not path.exists():
        policy = None if cell.onto is None else cell.home(state)
        evaluate_run(learned, episodes=EPISODES, noise=level, seed=cell.seed, policy=policy)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def without_checkpoints(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what evaluation does not need."""
    return None if Path(entry.name).name in ("checkpoints", "compiled") else entry


def main() -> None:
    """Start a process per method and task, or be one; then evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", help="TASK/METHODS/NOISES/SEEDS")
    parser.add_argument("--state", type=Path, required=True, help="where runs live, to go on from")
    parser.add_argument("--out", type=Path, required=True, help="the archive of runs to write")
    parser.add_argument("--seconds", type=float, default=580, help="wall clock, evaluation included")
    parser.add_argument("--tail", type=float, default=70, help="seconds kept for the evaluation")
    parser.add_argument("--levels", nargs="*", type=float, default=[], help="more noise levels to evaluate at")
    parser.add_argument("--only", help="be the process of this TASK/METHOD")
    options = parser.parse_args()
    began = time.monotonic()
    everything = [cell for word in options.words for cell in cells(word)]
    groups: dict[str, list[Cell]] = {}
    for cell in everything:
        groups.setdefault(cell.group, []).append(cell)
    if options.only:
        print(options.only, "learns on", jax.devices()[0], flush=True)
        # The backend is chosen by now; what is spawned from here on computes in NumPy and leaves the GPU alone.
        os.environ["JAX_PLATFORMS"] = "cpu"
        work(groups[options.only], options, began + options.seconds)
        return
    environment = {
        **os.environ,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "MUJOCO_GL": "disable",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(options.state / "compiled"),
    }
    unfinished = [
        name
        for name, group in groups.items()
        if group[0].method != "bc" and not all(cell.finished(options.state) for cell in group)
    ]
    children = []
    for name in unfinished:
        left = options.seconds - options.tail - (time.monotonic() - began)
        arguments = [*options.words, "--only", name, "--seconds", str(left), "--state", str(options.state)]
        arguments += ["--out", str(options.out)]
        children.append(subprocess.Popen([sys.executable, __file__, *arguments], env=environment))
    os.environ |= {**environment, "JAX_PLATFORMS": "cpu"}
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        clones = [cell for cell in everything if cell.method == "bc"]
        list(pool.map(partial(clone, state=options.state), clones))
        failed = [name for name, child in zip(unfinished, children, strict=True) if child.wait() != 0]
        wanted = [
            (cell, level)
            for cell in everything
            for level in ((cell.noise if cell.onto is None else cell.onto), *options.levels)
            if level == cell.noise or cell.onto is not None or cell.noise == 0
        ]
        scored = pool.map(partial(score, state=options.state), *zip(*wanted, strict=True))
        results = [result for result in scored if result is not None]
    (options.state / "baselines.json").write_text(json.dumps(results, indent=1))
    with tarfile.open(options.out, "w:gz") as archive:
        archive.add(options.state, "", filter=without_checkpoints)
    for r in results:
        where = f"{r['task']} {r['method']} learned at {r['learned_at_noise']:g}, acting at {r['noise']:g}"
        print(f"{where}, seed {r['run_seed']}: {r['return_mean']:.1f}, ratio {r['ratio']:.3f}", flush=True)
    if failed:
        raise SystemExit(f"training failed for {', '.join(failed)}; the error is printed above")


if __name__ == "__main__":
    main()
