"""Train the rivals as fast as one machine allows: all seeds and noise levels of a method side by side on one GPU.

    python benchmarks/baselines.py hopper/firl,gail,airl/0,0.5/0,1,2 --state /tmp/rivals --out runs.tar.gz

A word TASK/METHODS/NOISES/SEEDS stands for runs; `0:0.5` in the place of a noise level re-optimises the cost
learned at 0 under 0.5; in the place of a method, `gail+reward=negative` changes its settings and `gail@paper` takes
another preset. The runs of a method on a task share one process: their environments are stepped in a process each,
and their updates are one compiled call under `jax.vmap`, so that a GPU has hardly more to do for six runs than for
one. Everything else is that of `rhirl train`: presets, the order of events, the run directory.

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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jax

from rhirl.experiments import evaluate_run
from rhirl.experiments import train as train_run
from rival_cells import Cell, cells
from rival_fleet import Fleet

EPISODES = 50


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
