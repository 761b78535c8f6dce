"""GAIL and AIRL beside those of the `imitation` library: environment steps per second at equal settings in one run.

    python benchmarks/baselines_speed.py --python PYTHON --out results/bench/baselines.json

PYTHON is an interpreter that has imitation 1.0.1, which needs older versions of Gymnasium and stable-baselines3 and
so an environment of its own. Both learn on Pendulum with the same work to do: eight environments, one SAC update of
256 transitions per step, 64 updates of a state-only (64, 64) discriminator, or of AIRL's reward and potential, on
256 + 256 states every 128 steps, no gradient penalty. Each waits in a process of its own; they are asked in turn,
the order changing every time, so that what else the machine does falls on both alike. Reported are medians over the
repetitions: speeds, and ratios within one repetition. `imitation` has no f-IRL.

Then the methods by themselves, each with its `default` preset on Hopper: what a million environment steps take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

SIZES = {"small": 64, "large": 256}
"""Width of the two hidden layers of policy and critics."""
METHODS = ("firl", "gail", "airl")
COMPARED = ("gail", "airl")
WARM_UP = 24
"""Iterations before a method is timed: the first twenty explore at random."""
PACKAGES = {"ours": ("jax", "gymnasium"), "imitation": ("imitation", "stable_baselines3", "torch", "gymnasium")}
ENVS, ROUND, BATCH, UPDATES, HORIZON = 8, 128, 256, 64, 100


def ours(method: str, width: int) -> Callable[[], int]:
    """Return a function that makes a round and returns its environment steps."""
    from rhirl.baselines import AIRL, GAIL, AIRLConfig, GAILConfig
    from rhirl.demos import load_demos
    from rhirl.rl import SACConfig

    sac = SACConfig(hidden=(width, width), batch=BATCH, envs=ENVS, round_steps=ROUND // ENVS, random_steps=ROUND)
    equal: dict[str, Any] = {"hidden": (64, 64), "batch": BATCH, "updates": UPDATES, "gradient_penalty": 0.0}
    demos = load_demos("pendulum", episodes=10, everything=True)

    def make() -> gymnasium.Env[Any, Any]:
        return gymnasium.make("Pendulum-v1")

    learner: AIRL | GAIL
    if method == "airl":
        learner = AIRL(make, demos, AIRLConfig(sac=sac, **equal))
    else:
        learner = GAIL(make, demos, GAILConfig(sac=sac, **equal))

    def work() -> int:
        learner.step().get("loss", np.zeros(())).item()
        return ROUND

    return work


def imitation(method: str, width: int) -> Callable[[], int]:
    """Return the same for the other library."""
    sb3, types = import_module("stable_baselines3"), import_module("imitation.data.types")
    vectors = import_module("stable_baselines3.common.vec_env")
    nets = import_module("imitation.rewards.reward_nets")
    trainers = import_module(f"imitation.algorithms.adversarial.{method}")
    venv = vectors.DummyVecEnv([lambda: gymnasium.make("Pendulum-v1", max_episode_steps=HORIZON)] * ENVS)
    generator = sb3.SAC(
        "MlpPolicy",
        venv,
        batch_size=BATCH,
        learning_starts=ROUND,
        gradient_steps=-1,
        policy_kwargs={"net_arch": [width, width]},
    )
    rng = np.random.default_rng(0)
    steps = 10 * HORIZON
    demonstrations = types.Transitions(
        obs=rng.normal(size=(steps, 3)).astype(np.float32),
        acts=rng.uniform(-2, 2, (steps, 1)).astype(np.float32),
        infos=np.array([{}] * steps),
        next_obs=rng.normal(size=(steps, 3)).astype(np.float32),
        dones=np.zeros(steps, bool),
    )
    spaces = (venv.observation_space, venv.action_space)
    if method == "airl":
        sizes = {"reward_hid_sizes": (64, 64), "potential_hid_sizes": (64, 64)}
        reward = nets.BasicShapedRewardNet(*spaces, use_action=False, **sizes)
    else:
        reward = nets.BasicRewardNet(*spaces, use_action=False, hid_sizes=(64, 64))
    trainer = getattr(trainers, method.upper())(
        demonstrations=demonstrations,
        demo_batch_size=BATCH,
        venv=venv,
        gen_algo=generator,
        reward_net=reward,
        gen_train_timesteps=ROUND,
        n_disc_updates_per_round=UPDATES,
        gen_replay_buffer_capacity=100_000,
        allow_variable_horizon=True,
    )

    def work() -> int:
        trainer.train(ROUND)
        return ROUND

    return work


def time_method(method: str, iterations: int) -> dict[str, float]:
    """Time iterations of a method on Hopper, as `rhirl train hopper --method METHOD` makes them."""
    from rhirl.experiments.methods import get_method
    from rhirl.experiments.plan import find_demos, plan_run
    from rhirl.experiments.presets import build
    from rhirl.experiments.run import RunDirectory
    from rhirl.tasks import get_task

    found, asked = get_method(method), plan_run("hopper", method, 0.0, 0, episodes=10)
    config = build(found.config, asked.hyper)
    demos = find_demos("hopper", 0.0, episodes=10, controls=found.needs_controls)
    with tempfile.TemporaryDirectory() as folder:
        learner: Any = found.start(RunDirectory(Path(folder)), get_task("hopper"), demos, config, asked)
        for _ in range(WARM_UP):
            learner.step()
        began = time.perf_counter()
        for _ in range(iterations):
            learner.step()
        spent = time.perf_counter() - began
        learner.close()
    speed = iterations * config.iteration_steps / spent
    return {"steps_per_s": speed, "hours_per_million_steps": 1e6 / speed / 3600}


def serve(library: str, method: str, size: str) -> None:
    """Be one library: for every line, work for so many seconds and answer with steps per second."""
    talk, sys.stdout = sys.stdout, sys.stderr  # before anything is built: loggers keep the one they find
    work = (ours if library == "ours" else imitation)(method, SIZES[size])
    for _ in range(4):
        work()
    print(json.dumps({package: version(package) for package in PACKAGES[library]}), file=talk, flush=True)
    for line in sys.stdin:
        seconds = float(line)
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            done += work()
        print(json.dumps(done / (time.perf_counter() - began)), file=talk, flush=True)


class Worker:
    """A process that serves."""

    def __init__(self, python: str, library: str, method: str, size: str, threads: int) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [python, __file__, "--serve", library, method, size]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, **pipes)

    def answer(self) -> Any:
        """Wait for the next line of JSON."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise SystemExit("a library failed; run it alone with --serve to see why")
        return json.loads(line)

    def speed(self, seconds: float) -> float:
        """Measure."""
        assert self.process.stdin is not None
        print(seconds, file=self.process.stdin, flush=True)
        return float(self.answer())


def compare(python: str, method: str, size: str, repetitions: int, seconds: float, threads: int) -> dict[str, Any]:
    """Measure a method of both at one size."""
    workers = {
        "ours": Worker(sys.executable, "ours", method, size, threads),
        "imitation": Worker(python, "imitation", method, size, threads),
    }
    versions = {name: worker.answer() for name, worker in workers.items()}
    speeds: dict[str, list[float]] = {name: [] for name in workers}
    for repetition in range(repetitions):
        for name in sorted(workers, reverse=repetition % 2 == 0):
            speeds[name].append(workers[name].speed(seconds))
    for worker in workers.values():
        worker.process.stdin.close() if worker.process.stdin else None
        worker.process.wait()
    ratios = np.divide(speeds["ours"], speeds["imitation"])
    medians = {name: float(np.median(found)) for name, found in speeds.items()}
    return {
        "width": SIZES[size],
        "versions": versions,
        "steps_per_s": medians,
        "hours_per_million_steps": {name: 1e6 / speed / 3600 for name, speed in medians.items()},
        "ratio": float(np.median(ratios)),
        "ratios": ratios.round(2).tolist(),
        "speeds": speeds,
    }


def main() -> None:
    """Compare, or be one of the compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="an interpreter with imitation")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--iterations", type=int, default=30, help="of each method by itself")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--serve", nargs=3, help="library, method and size")
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    how = (options.repetitions, options.seconds, options.threads)
    found = {method: {size: compare(options.python, method, size, *how) for size in SIZES} for method in COMPARED}
    methods = {method: time_method(method, options.iterations) for method in METHODS}
    surroundings = {"cores": len(os.sched_getaffinity(0)), "threads": options.threads, "load": os.getloadavg()}
    result: dict[str, Any] = {**surroundings, **found, "methods_on_hopper": methods}
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    for method in COMPARED:
        for size, at in found[method].items():
            print(method, size, json.dumps(at["steps_per_s"]), "ratio", round(at["ratio"], 2))
    for method, timed in methods.items():
        print(method, json.dumps(timed))


if __name__ == "__main__":
    main()
