"""Our f-IRL, GAIL and AIRL beside public ones: environment steps per second at equal settings in one run.

    python benchmarks/baselines_speed.py --python PYTHON --out results/bench/baselines.json
    python benchmarks/baselines_speed.py --python PYTHON --methods firl --out results/bench/baselines-firl.json

By default GAIL and AIRL are compared. PYTHON then is an interpreter that has imitation 1.0.1, which needs older
versions of Gymnasium and stable-baselines3 and so an environment of its own. Both learn on Pendulum with the same
work to do: eight environments, one SAC update of 256 transitions per step, 64 updates of a state-only (64, 64)
discriminator, or of AIRL's reward and potential, on 256 + 256 states every 128 steps, no gradient penalty.

`imitation` has no f-IRL. For `--methods firl` PYTHON is an interpreter that has stable-baselines3 and MuJoCo
(`pip install stable-baselines3 "gymnasium[mujoco]"`), and the other side is `firl_torch.py`: the published loop
around the SAC of stable-baselines3, both on Hopper and with the same demonstrations. `firl` has the settings of our
`default` preset, `firl-published` those of f-IRL's authors. Work is timed from lesson to lesson of the reward.

Each side waits in a process of its own, the other one in two: torch with one thread, and with as many as there are
cores. They are asked in turn, the order changing every time, so that what else the machine does falls on all alike.
Reported are medians over the repetitions: speeds, and ratios within one repetition to the better number of threads.
Beside other work torch's second thread mostly waits for a core and the run for it; `--threads 1` leaves it out.

Then our methods by themselves, each with its `default` preset on Hopper: what a million environment steps take.
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
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

SIZES = {"small": 64, "large": 256}
"""Width of the two hidden layers of policy and critics."""
RIVALS = {"gail": "imitation", "airl": "imitation", "firl": "sb3", "firl-published": "sb3"}
"""Who stands against ours at what."""
METHODS = ("firl", "gail", "airl")
"""What has a `default` preset to be timed by itself."""
WARM_STEPS = 600
"""Environment steps at least before a comparison: they explore, then learn for the first time, which compiles."""
WARM_UP = 24
"""Iterations before a method is timed by itself: the first twenty explore at random."""
PACKAGES = {
    "ours": ("jax", "gymnasium"),
    "imitation": ("imitation", "stable_baselines3", "torch", "gymnasium"),
    "sb3": ("stable_baselines3", "torch", "gymnasium", "mujoco"),
}
ENVS, ROUND, BATCH, UPDATES, HORIZON = 8, 128, 256, 64, 100
EPISODES = 10
"""Demonstrations."""
LEARNED = {"hidden": (64, 64), "lr": 3e-4, "weight_decay": 1e-4, "reward_lr": 1e-4, "reward_decay": 1e-3}
OUR_LESSONS = {"batch": 256, "updates": 32, "every": 1, "gradient_penalty": 0.5, "absorbing": True}
OUR_ROUNDS = {"envs": 16, "round_steps": 32, "update_ratio": 0.5, "random_steps": 512}
OUR_SAC = {"batch": 256, "learning_rate": 3e-4, "temperature": None}
THEIR_LESSONS = {"batch": 800, "updates": 1_200, "every": 100, "gradient_penalty": 0.0, "absorbing": False}
THEIR_ROUNDS = {"envs": 1, "round_steps": 50, "update_ratio": 1.0, "random_steps": 1_000}
THEIR_SAC = {"batch": 100, "learning_rate": 1e-3, "temperature": 0.2}
FIRL_SETTINGS: dict[str, dict[str, Any]] = {
    "firl": {**LEARNED, **OUR_LESSONS, "sac": {**OUR_ROUNDS, **OUR_SAC}},
    "firl-published": {**LEARNED, **THEIR_LESSONS, "sac": {**THEIR_ROUNDS, **THEIR_SAC}},
}
"""f-IRL's for both sides, as fields of `FIRLConfig`: our `default` for Hopper, and what its authors published. The
critics of stable-baselines3 have no layer normalisation, so ours go without it here."""


def ours(method: str, width: int) -> Callable[[], int]:
    """Return a function that makes a round and returns its environment steps."""
    return our_firl(method, width) if method in FIRL_SETTINGS else our_adversary(method, width)


def our_firl(method: str, width: int) -> Callable[[], int]:
    """Return the same for f-IRL, up to its next lesson; environments are stepped as `rhirl train` has it."""
    from rhirl.baselines import FIRL, FIRLConfig
    from rhirl.demos import load_demos
    from rhirl.rl import SACConfig

    settings = FIRL_SETTINGS[method]
    sac = SACConfig(hidden=(width, width), **settings["sac"])
    config = FIRLConfig(**{**settings, "sac": sac})
    demos = load_demos("hopper", episodes=EPISODES)
    learner = FIRL(partial(gymnasium.make, "Hopper-v5"), demos, config, processes=1)

    def work() -> int:
        for _ in range(config.every):
            metrics = learner.step()
        metrics.get("loss", np.zeros(())).item()
        return config.every * config.iteration_steps

    return work


def sb3(method: str, width: int) -> Callable[[], int]:
    """Return the same for f-IRL on stable-baselines3."""
    from firl_torch import FIRL

    return FIRL(FIRL_SETTINGS[method], width, EPISODES, kept=16).work


def our_adversary(method: str, width: int) -> Callable[[], int]:
    """Return the same for GAIL or AIRL."""
    from rhirl.baselines import AIRL, GAIL, AIRLConfig, GAILConfig
    from rhirl.demos import load_demos
    from rhirl.rl import SACConfig

    sac = SACConfig(hidden=(width, width), batch=BATCH, envs=ENVS, round_steps=ROUND // ENVS, random_steps=ROUND)
    equal: dict[str, Any] = {"hidden": (64, 64), "batch": BATCH, "updates": UPDATES, "gradient_penalty": 0.0}
    demos = load_demos("pendulum", episodes=EPISODES, everything=True)

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
    steps = EPISODES * HORIZON
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
    work = {"ours": ours, "imitation": imitation, "sb3": sb3}[library](method, SIZES[size])
    warm = 0
    while warm < WARM_STEPS:
        warm += work()
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
    """Measure a method of both sides at one size, the other one with one thread and with all."""
    rival = RIVALS[method]
    counts = {f"{rival}, threads: {count}": count for count in sorted({1, threads})}
    workers = {"ours": Worker(sys.executable, "ours", method, size, threads)}
    workers |= {name: Worker(python, rival, method, size, count) for name, count in counts.items()}
    versions = {name: worker.answer() for name, worker in workers.items()}
    speeds: dict[str, list[float]] = {name: [] for name in workers}
    for repetition in range(repetitions):
        for name in sorted(workers, reverse=repetition % 2 == 0):
            speeds[name].append(workers[name].speed(seconds))
    for worker in workers.values():
        worker.process.stdin.close() if worker.process.stdin else None
        worker.process.wait()
    medians = {name: float(np.median(found)) for name, found in speeds.items()}
    best = max(counts, key=lambda name: medians[name])
    ratios = np.divide(speeds["ours"], speeds[best])
    return {
        "width": SIZES[size],
        "versions": {"ours": versions["ours"], rival: versions[best]},
        "steps_per_s": medians,
        "hours_per_million_steps": {name: 1e6 / speed / 3600 for name, speed in medians.items()},
        "compared_with": best,
        "ratio": float(np.median(ratios)),
        "ratios": ratios.round(2).tolist(),
        "speeds": speeds,
    }


def main() -> None:
    """Compare, or be one of the compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="an interpreter with the other side")
    parser.add_argument("--methods", nargs="+", choices=RIVALS, default=["gail", "airl"])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
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
    compared, alone = options.methods, [method for method in options.methods if method in METHODS]
    found = {m: {size: compare(options.python, m, size, *how) for size in options.sizes} for m in compared}
    methods = {method: time_method(method, options.iterations) for method in alone}
    surroundings = {"cores": len(os.sched_getaffinity(0)), "threads": options.threads, "load": os.getloadavg()}
    result: dict[str, Any] = {**surroundings, **found, "methods_on_hopper": methods}
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    for method in compared:
        for size, at in found[method].items():
            print(method, size, json.dumps(at["steps_per_s"]), "ratio", round(at["ratio"], 2))
    for method, timed in methods.items():
        print(method, json.dumps(timed))


if __name__ == "__main__":
    main()
