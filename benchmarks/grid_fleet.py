"""Do the cells of a grid on one machine with a GPU: it updates the costs while the cores simulate and score.

    python benchmarks/grid_fleet.py ablation-horizon --state STATE --out RUNS.tar.gz

`rhirl grid` gives each run a core of its own and has it scored on the way by that core. Where cores are many and
time is short, three things can go on at once: each cell learns in a process with a few cores and the GPU, what it
has learned at `SNAPSHOTS` moments is laid aside, and a pool of processes plays the episodes of all of them, a core
to each. The settings, the episodes and the run directories are those of `rhirl grid`, which takes them for done.

Everything lives in `--state` and goes on there when called again. Written to `--out`, one archive: the finished
runs, without checkpoints.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tarfile
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from rhirl.atomic import write_atomically
from rhirl.experiments import RunDirectory, train
from rhirl.experiments.evaluate import episode_return, keep_evaluation, scores, yardstick
from rhirl.experiments.grid import Cell, read_spec
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import build
from rhirl.experiments.seeds import EVALUATION, VALIDATION, episode_seeds
from rhirl.experiments.train import EVALUATION_EPISODES, Progress
from rhirl.learning import Config
from rhirl.machine import claim_cores, hardware, thread_environment
from rhirl.proposals import explanation
from rhirl.tasks import get_task

SNAPSHOTS = 5
"""How often a cell is scored on the way, the end included."""
NEEDED = ("config.json", "cost.safetensors", "policy.safetensors", "danger.safetensors")
"""What acts."""


def learn(cell: Cell, root: Path) -> None:
    """Learn in this process, laying aside what is to be scored."""
    run = RunDirectory(root / cell.folder)
    began = time.monotonic()

    def lay_aside(seen: Progress) -> None:
        if seen.iteration % (seen.iterations // SNAPSHOTS) == 0:
            target = run.path / "snapshots" / str(seen.iteration)
            shutil.copytree(run.path, half := target.with_name("half"), ignore=lambda _, names: not_needed(names))
            half.rename(target)

    train(run, replace(cell.plan(), evaluations=0), resume=run.exists(), show=lay_aside)
    run.write_json("timing.json", {"training_s": round(time.monotonic() - began, 3), **hardware()})
    shutil.rmtree(run.checkpoints)


def not_needed(names: list[str]) -> list[str]:
    """List what a copy that acts can do without."""
    return [name for name in names if name not in NEEDED]


class Scores:
    """Episodes of many runs in one pool of processes, and a file that remembers their returns."""

    def __init__(self, path: Path, workers: int) -> None:
        self.path = path
        self.known: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
        self._pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=settle)
        self._asked: dict[str, Future[float]] = {}

    def of(self, run: Path, noise: float, seeds: list[int]) -> np.ndarray[Any, Any] | None:
        """Return a run's returns, or None as long as some of them are missing."""
        for seed in seeds:
            key = f"{run.relative_to(self.path.parent)} {noise:g} {seed}"
            if key not in self.known and key not in self._asked:
                self._asked[key] = self._pool.submit(episode_return, run, noise, seed)
        for key, future in list(self._asked.items()):
            if future.done():
                self.known[key] = future.result()
                del self._asked[key]
                write_atomically(self.path, json.dumps(self.known).encode())
        keys = [f"{run.relative_to(self.path.parent)} {noise:g} {seed}" for seed in seeds]
        return np.array([self.known[key] for key in keys]) if all(key in self.known for key in keys) else None

    def close(self) -> None:
        """Begin no other episode."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def waiting(self) -> int:
        """Episodes that were asked for and are not there."""
        return len(self._asked)


def settle() -> None:
    """Keep to one core, and behind those who learn."""
    os.environ.update(thread_environment(1))
    claim_cores(1)
    os.nice(10)


def scored(cell: Cell, root: Path, scores_of: Scores) -> bool:
    """Score what a cell has laid aside; where it has learned, finish it. Tell whether nothing is left."""
    run = RunDirectory(root / cell.folder)
    if cell.is_done(root) and not (run.path / "snapshots").exists():
        return True
    task, seeds = get_task(cell.task), episode_seeds(VALIDATION, cell.seed, EVALUATION_EPISODES)
    moments = [path for path in run.path.glob("snapshots/*") if path.name != "half"]
    returns = {int(path.name): scores_of.of(path, cell.noise, seeds) for path in moments}
    if not run.exists() or run.checkpoints.exists():
        return False
    final = scores_of.of(run.path, cell.noise, episode_seeds(EVALUATION, cell.seed, cell.episodes))
    if final is None or any(value is None for value in returns.values()):
        return False
    by, lines = yardstick(task, seeds, cell.noise), run.read_metrics()
    for line in lines:
        value = returns.get(line["iteration"])
        if value is not None:
            line |= {"eval/return": float(value.mean()), "eval/score": scores(task, value, by)["score"]}
    write_atomically(run.metrics, "".join(json.dumps(line) + "\n" for line in lines).encode())
    keep_evaluation(run, final, cell.noise, cell.seed)
    shutil.rmtree(run.path / "snapshots")
    (run.path / "explained.safetensors").unlink(missing_ok=True)
    print(f"{cell}: {final.mean():.0f} in {cell.episodes} episodes", flush=True)
    return True


def main(
    grid: tyro.conf.Positional[str],
    /,
    state: Path,
    out: Path,
    only: tuple[str, ...] = (),
    learners: int = 8,
    cores: int = 4,
    seconds: float = 1e9,
    learning: str = "",
) -> None:
    """Learn and score the cells of a grid.

    Args:
        grid: Its name or file.
        state: Where runs live, to go on from.
        out: The archive of runs to write.
        only: Words one of which a cell's folder must have.
        learners: How many cells learn at once.
        cores: To each of them; they are shared where there are not as many.
        seconds: Wall clock, after which everything stops.
        learning: Be the process that learns this cell.
    """
    began = time.monotonic()
    ours = [cell for cell in read_spec(grid).cells if cell.method == "rhirl"]
    cells = [cell for cell in ours if not only or any(word in str(cell.folder) for word in only)]
    if learning:
        learn(next(cell for cell in cells if str(cell.folder) == learning), state)
        return
    for cell in cells:
        if build(Config, cell.plan().hyper).guided:  # on all cores and once, not by each that learns
            demos = find_demos(cell.task, cell.noise, None, cell.demonstrations)
            explanation(get_task(cell.task), demos, lambda words: print(words, flush=True))
    usable = sorted(os.sched_getaffinity(0))
    places = cycle([usable[i : i + cores] for i in range(0, len(usable), cores)])
    waiting = [c for c in cells if not c.is_done(state) and not (state / c.folder / "timing.json").exists()]
    children: dict[str, subprocess.Popen[bytes]] = {}
    arguments = [sys.executable, __file__, grid, "--state", str(state), "--out", str(out)]
    own = {**os.environ, **thread_environment(1), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    os.environ["JAX_PLATFORMS"] = "cpu"  # of those who score
    scores_of = Scores(state / "returns.json", len(usable))
    while time.monotonic() - began < seconds:
        for name in [name for name, child in children.items() if child.poll() is not None]:
            if children.pop(name).returncode:
                raise SystemExit(f"learning failed for {name}; the error is printed above")
        while waiting and len(children) < learners:
            cell, place = waiting.pop(0), ",".join(map(str, next(places)))
            command = ["taskset", "--cpu-list", place, *arguments, "--learning", str(cell.folder)]
            children[str(cell.folder)] = subprocess.Popen(command, env=own)
        left = [cell for cell in cells if not scored(cell, state, scores_of)]
        if not left:
            break
        print(f"{time.monotonic() - began:.0f} s: {len(left)} left, {scores_of.waiting} episodes asked", flush=True)
        time.sleep(min(15.0, max(0.0, seconds - (time.monotonic() - began))))
    for child in children.values():
        child.terminate()
    with tarfile.open(out, "w:gz") as archive:
        for cell in cells:
            if cell.is_done(state):
                archive.add(state / cell.folder, cell.folder)
    scores_of.close()


if __name__ == "__main__":
    tyro.cli(main)
