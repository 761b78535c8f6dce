"""Gradient steps per second of our SAC, stable-baselines3's and sbx's on Hopper sizes, side by side in one run.

    python benchmarks/sac.py --python PYTHON --out results/bench/sac.json

PYTHON is an interpreter that has stable-baselines3 and sbx. Every library waits in processes of its own, on one
core and on two; they are asked in turn for a short burst, again and again, so that what else the machine does falls
on all of them alike. Reported are medians over the repetitions: speeds, and ratios within one repetition. Timed are

    one        updates alone, one a call, on a replay buffer that is full of random transitions
    fused      the same, 64 updates a call (stable-baselines3 loops over them in Python)
    training   the whole loop with one update per environment step, the environment costing nothing: `learn` of the
               others as it comes, our `train` with rounds of 64 steps

A library's speed at something is that of the better number of cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

SIZES = {"large": (256, 256), "small": (100, 64)}
"""Transitions per update and width of the two hidden layers; `small` is the paper's."""
LIBRARIES = {"ours": ("jax",), "stable_baselines3": ("stable_baselines3", "torch"), "sbx": ("sbx", "jax")}
"""What is compared, and the packages whose versions matter for it."""
MODES = ("one", "fused", "training")
FUSED, CAPACITY, OBSERVATIONS, CONTROLS = 64, 100_000, 11, 3


class Still(gymnasium.Env):
    """An environment of Hopper's shapes that costs nothing."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATIONS,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (CONTROLS,), np.float32)
    x = np.zeros(OBSERVATIONS)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        """Be still."""
        return self.x, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Stay so."""
        return self.x, 0.0, False, False, {}


def transitions() -> dict[str, np.ndarray]:
    """Random transitions."""
    rng = np.random.default_rng(0)
    return {
        "observations": rng.normal(size=(CAPACITY, OBSERVATIONS)),
        "actions": rng.uniform(-1, 1, (CAPACITY, CONTROLS)),
        "rewards": rng.normal(size=CAPACITY),
        "dones": np.zeros(CAPACITY),
        "next_observations": rng.normal(size=(CAPACITY, OBSERVATIONS)),
    }


def ours(batch: int, width: int) -> dict[str, Callable[[], int]]:
    """For every mode a function that makes some updates and returns how many."""
    import jax

    from rhirl.rl import SAC, SACConfig, Transitions
    from rhirl.rl.replay import insert, pack

    config = SACConfig(hidden=(width, width), batch=batch, capacity=CAPACITY, round_steps=FUSED)
    sac = SAC(config, Still, 1000)
    sac.replay = insert(sac.replay, jax.numpy.asarray(pack(Transitions(*transitions().values()))))
    sac.steps = CAPACITY

    def update(count: int) -> int:
        sac.update(count)["value"].block_until_ready()
        return count

    def train() -> int:
        sac.round()
        return FUSED

    return {"one": lambda: update(1), "fused": lambda: update(FUSED), "training": train}


def other(library: str, batch: int, width: int) -> dict[str, Callable[[], int]]:
    """The same for a library that follows stable-baselines3's interface."""
    model = import_module(library).SAC(
        "MlpPolicy", Still(), batch_size=batch, buffer_size=CAPACITY, policy_kwargs={"net_arch": [width, width]}
    )
    model.learn(200)
    buffer = model.replay_buffer
    for name, values in transitions().items():
        array = getattr(buffer, name)
        array[:] = values.reshape(array.shape)
    buffer.full = True

    def update(count: int) -> int:
        model.train(gradient_steps=count, batch_size=batch)
        return count

    def train() -> int:
        model.learn(FUSED, reset_num_timesteps=False)
        return FUSED

    return {"one": lambda: update(1), "fused": lambda: update(FUSED), "training": train}


def serve(library: str, size: str, cores: int) -> None:
    """Be one library on so many cores: for every mode asked for, answer with updates per second."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    modes = ours(*SIZES[size]) if library == "ours" else other(library, *SIZES[size])
    for work in modes.values():
        work()
    versions = {package: import_module(package).__version__ for package in LIBRARIES[library]}
    print(json.dumps(versions), flush=True)
    for line in sys.stdin:
        mode, seconds = json.loads(line)
        modes[mode]()
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            done += modes[mode]()
        print(json.dumps(done / (time.perf_counter() - began)), flush=True)


class Worker:
    """A process that serves."""

    def __init__(self, python: str, library: str, size: str, cores: int) -> None:
        command = [python, __file__, "--serve", library, size, str(cores)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores), "JAX_PLATFORMS": "cpu"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)

    def answer(self) -> Any:
        """Wait for the next line of JSON."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line[0] in "{0123456789":
                return json.loads(line)
        raise SystemExit("a library failed; its error is printed above")

    def speed(self, mode: str, seconds: float) -> float:
        """Ask for a burst."""
        assert self.process.stdin is not None
        print(json.dumps([mode, seconds]), file=self.process.stdin, flush=True)
        return self.answer()


def measure(size: str, options: argparse.Namespace) -> dict[str, Any]:
    """All libraries at one size."""
    counts = [cores for cores in (1, 2) if cores <= len(os.sched_getaffinity(0))]
    pythons = {library: sys.executable if library == "ours" else options.python for library in options.libraries}
    workers = {key: Worker(pythons[key[0]], key[0], size, key[1]) for key in product(options.libraries, counts)}
    versions = {library: worker.answer() for (library, _), worker in workers.items()}
    bursts = {(mode, *key): list[float]() for mode, key in product(MODES, workers)}
    for _ in range(options.repetitions):
        for mode, library, cores in bursts:
            bursts[mode, library, cores].append(workers[library, cores].speed(mode, options.seconds))
    for worker in workers.values():
        worker.process.terminate()

    def best(mode: str, library: str) -> np.ndarray:
        return max((np.array(bursts[mode, library, cores]) for cores in counts), key=np.median)

    speeds = {
        mode: {
            library: {str(cores): round(float(np.median(bursts[mode, library, cores])), 1) for cores in counts}
            for library in options.libraries
        }
        for mode in MODES
    }
    rivals = [library for library in options.libraries if library != "ours"]
    ratios = {
        f"ours {mine} / {library} {theirs}": round(float(np.median(best(mine, "ours") / best(theirs, library))), 2)
        for library in rivals
        for mine, theirs in (("fused", "one"), ("fused", "fused"), ("fused", "training"), ("training", "training"))
    }
    batch, width = SIZES[size]
    sizes = {"batch": batch, "hidden": [width, width]}
    return {**sizes, "versions": versions, "updates_per_s_by_cores": speeds, "ratios": ratios}


def main() -> None:
    """Measure both sizes, or be a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the other libraries")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a burst")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", nargs=3, metavar=("LIBRARY", "SIZE", "CORES"), help="what this script starts")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], options.serve[1], int(options.serve[2]))
        return
    began, load = time.perf_counter(), os.getloadavg()[0]
    result: dict[str, Any] = {
        "command": f"python benchmarks/sac.py --python PYTHON --repetitions {options.repetitions} "
        f"--seconds {options.seconds:g}",
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(load, 2),
        **{size: measure(size, options) for size in SIZES},
        "took_s": 0.0,
    }
    result["took_s"] = round(time.perf_counter() - began, 1)
    text = json.dumps(result, indent=2)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
