"""Train the experts as fast as one machine allows: every task in processes of its own, learners on the GPU.

    python benchmarks/train_experts.py --out experts --state /tmp/experts --seconds 540

The learner of a task never waits: while its workers step environments it keeps updating, so the number of
updates per step is what the machine gives (and is reported). A further process evaluates the deterministic actor
all the time and the best actors are kept. At the end they are compared on 50 selection episodes, and the winner
is scored on 100 fresh ones. Called again with the same `--state`, training goes on where it stopped.

Written to `--out`: `<task>.policy.safetensors`, `<task>.json` (curve, returns, settings) and
`<task>.learner.safetensors` (to go on elsewhere, without the replay buffer: `--learners`).

`--tasks hopper@0.5` trains, selects and scores an expert inside control noise of that standard deviation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from rhirl.rl import SAC, Actor, Policy, SACConfig, evaluate, files, to_numpy

CHUNK = 32  # updates per call of the learner
EVALUATION_SEED, SELECTION_SEED, SCORE_SEED = 10_000, 1_000_000, 2_000_000


class ControlNoise(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Executes clip(u + ε), ε ~ N(0, σ²I) in [-1, 1] units for a command u; ε follows from the reset's seed."""

    def __init__(self, env: gymnasium.Env[Any, Any], noise: float) -> None:
        super().__init__(env)
        self.noise = noise
        box = env.action_space
        if not isinstance(box, gymnasium.spaces.Box):
            raise TypeError(f"control noise needs a Box action space, not {box}")
        self.low, self.high, self.half = box.low, box.high, (box.high - box.low) / 2

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self.rng = np.random.default_rng(seed)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Disturb, then step."""
        disturbance = self.noise * self.half * self.rng.standard_normal(np.shape(action))
        return self.env.step(np.clip(action + disturbance, self.low, self.high).astype(np.float32))


def make_env(env_id: str, noise: float, kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Make an environment with control noise, or the plain one."""
    env = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    return ControlNoise(env, noise) if noise else env


@dataclass(frozen=True)
class Recipe:
    """One expert: its environment and how it is trained."""

    env: str
    horizon: int
    target: float
    workers: int
    config: SACConfig
    seconds: float = float("inf")
    platform: str = ""
    kwargs: dict[str, Any] = field(default_factory=dict)
    noise: float = 0.0

    @property
    def make(self) -> Any:
        """A picklable maker of the environment."""
        return partial(make_env, self.env, self.noise, self.kwargs)


LOCOMOTION: dict[str, Any] = {
    "critic_hidden": (512, 512),
    "layer_norm": True,
    "batch": 1024,
    "capacity": 4_000_000,
    "round_steps": 25,
    "random_steps": 20_000,
    "update_ratio": 0.02,
}


def recipe(task: str, seed: int = 0) -> Recipe:
    """Look a task up; `update_ratio` is the least the learner does before it takes new transitions in."""
    task, _, noise = task.partition("@")
    if noise:
        # Ant's steps are the dearest: it is given most of a machine of sixteen cores.
        return replace(recipe(task, seed), noise=float(noise), workers=10 if task == "ant" else 2)

    def tuned(**changes: Any) -> SACConfig:
        return SACConfig(**{**LOCOMOTION, "seed": seed, **changes})

    if task == "pendulum":
        small = SACConfig(
            hidden=(64, 64), learning_rate=1e-3, batch=256, envs=8, round_steps=16, update_ratio=0.5,
            random_steps=1_000, capacity=200_000, seed=seed,
        )  # fmt: skip
        return Recipe("Pendulum-v1", 100, -155, 1, small, seconds=90, platform="cpu")
    if task == "lunar_lander":
        config = tuned(envs=16, batch=512, critic_hidden=(256, 256), capacity=1_000_000, random_steps=5_000)
        return Recipe("LunarLander-v3", 250, 232, 1, config, seconds=300, kwargs={"continuous": True})
    if task == "hopper":
        return Recipe("Hopper-v5", 1000, 3222, 2, tuned(envs=16, batch=512, critic_hidden=(256, 256)))
    if task == "walker2d":
        return Recipe("Walker2d-v5", 1000, 4999, 4, tuned(envs=32))
    if task == "ant":
        # The 78 contact forces only dilute what the other 27 observations already say; the reward is the same.
        plain = {"include_cfrc_ext_in_observation": False}
        return Recipe("Ant-v5", 1000, 5759, 5, tuned(envs=40), kwargs=plain)
    raise SystemExit(f"unknown task {task}; known are pendulum, lunar_lander, hopper, walker2d, ant")


def serve_evaluations(pipe: Connection, make: Any, horizon: int) -> None:
    """Evaluate actors that come through a pipe, until it closes."""
    while True:
        try:
            actor, episodes, seed = pipe.recv()
        except EOFError:
            return
        pipe.send(evaluate(make, horizon, actor, episodes, seed))


class Evaluators:
    """Processes that evaluate actors beside the training."""

    def __init__(self, spec: Recipe, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipes = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            context.Process(target=serve_evaluations, args=(theirs, spec.make, spec.horizon), daemon=True).start()
            self.pipes.append(ours)

    def returns(self, actor: Actor, episodes: int, seed: int) -> np.ndarray:
        """Share episodes among the processes and wait for all of them."""
        bounds = np.linspace(0, episodes, len(self.pipes) + 1).astype(int)
        for pipe, low, high in zip(self.pipes, bounds, bounds[1:], strict=False):
            pipe.send((actor, int(high - low), seed + int(low)))
        return np.concatenate([pipe.recv() for pipe in self.pipes])


class Expert:
    """The training of one expert."""

    def __init__(self, task: str, seed: int, out: Path, state: Path, learners: Path | None) -> None:
        self.task, self.out, self.spec = task, out, recipe(task, seed)
        self.full = state / f"{task}.safetensors"
        self.notes = state / f"{task}.json"
        self.sac = SAC(self.spec.config, self.spec.make, self.spec.horizon, processes=self.spec.workers)
        self.learning_from = self.spec.config.random_steps
        self.curve: list[dict[str, float]] = []
        self.best: list[tuple[float, Actor]] = []
        self.before = 0.0
        if self.full.exists():
            self.sac.restore(self.full)
            self.resume(self.notes)
        elif learners is not None and (learners / f"{task}.learner.safetensors").exists():
            source = learners / f"{task}.learner.safetensors"
            arrays, _ = files.load(source)
            self.sac.learner = jax.tree.map(jnp.asarray, files.fill(self.sac.learner, arrays, source))
            self.resume(learners / f"{task}.json")
            # The replay buffer stayed behind: fill it with the policy's own steps before learning goes on.
            self.sac.steps = int(self.curve[-1]["steps"]) if self.curve else self.spec.config.random_steps
            self.learning_from = self.sac.steps + 100_000

    def resume(self, notes: Path) -> None:
        """Take the curve and the best policies so far along."""
        earlier = json.loads(notes.read_text())
        self.curve, self.before = earlier["curve"], earlier["seconds"]
        kept = Policy.load(notes.with_name(f"{self.task}.policy.safetensors"))
        self.best = [(max(row["return"] for row in self.curve), kept.actor)]

    def train(self, deadline: float) -> None:
        """Step, update and evaluate until the clock says so; `deadline` in time.monotonic()."""
        sac, config, began, told = self.sac, self.spec.config, time.monotonic(), 0.0
        evaluators = Evaluators(self.spec, 1)
        pipe, judged, asked = evaluators.pipes[0], None, began
        least = -(-config.updates_per_round // CHUNK)
        while (now := time.monotonic()) < deadline:
            exploring = sac.steps < config.random_steps
            actor = None if exploring else to_numpy(sac.learner.actor)
            sac.envs.start(actor, config.round_steps)
            metrics: dict[str, Any] = {}
            calls = 0
            if sac.steps >= self.learning_from:
                while calls < least or not sac.envs.ready:
                    metrics, calls = sac.update(CHUNK), calls + 1
                    metrics["value"].block_until_ready()
            sac.collect(metrics)
            if judged is None and metrics and actor is not None and now > asked + 2:
                asked = now
                judged = {
                    "steps": sac.steps,
                    "updates": int(sac.learner.updates),
                    "seconds": self.before + now - began,
                }
                judged_actor = actor
                pipe.send((actor, 10, EVALUATION_SEED + 10 * len(self.curve)))
            elif judged is not None and pipe.poll():
                returns = pipe.recv()
                row = {**judged, "return": float(returns.mean()), "worst": float(returns.min())}
                self.curve.append(row)
                self.best = sorted([*self.best, (row["return"], judged_actor)], key=lambda pair: -pair[0])[:3]
                judged = None
                if now - told > 15:
                    told = now
                    self.write({"curve": self.curve, "seconds": row["seconds"]}, self.best[0][1], self.out)
                    shown = {key: round(float(value), 2) for key, value in {**metrics, **row}.items()}
                    print(self.task, json.dumps(shown), flush=True)
        if judged is not None:
            pipe.recv()
        self.seconds = self.before + time.monotonic() - began

    def finish(self) -> None:
        """Compare the best policies, score the winner, and write everything."""
        evaluators = Evaluators(self.spec, self.spec.workers + 1)
        candidates = [actor for _, actor in self.best] + [to_numpy(self.sac.learner.actor)]
        selection = [evaluators.returns(actor, 50, SELECTION_SEED) for actor in candidates]
        winner = candidates[int(np.argmax([returns.mean() for returns in selection]))]
        returns = evaluators.returns(winner, 100, SCORE_SEED)
        card = {
            "task": self.task,
            "env": self.spec.env,
            "env_kwargs": self.spec.kwargs,
            "horizon": self.spec.horizon,
            "target": self.spec.target,
            "return_mean": float(returns.mean()),
            "return_std": float(returns.std()),
            "return_min": float(returns.min()),
            "returns": returns.tolist(),
            "selection_means": [float(r.mean()) for r in selection],
            "seeds": {"training": self.spec.config.seed, "selection": SELECTION_SEED, "score": SCORE_SEED},
            "steps": self.sac.steps,
            "updates": int(self.sac.learner.updates),
            "seconds": self.seconds,
            "config": asdict(self.spec.config),
            "versions": versions(),
            "device": str(jax.devices()[0]),
            "curve": self.curve,
        }
        self.write(card, winner, self.out)
        met = "reached" if returns.mean() >= self.spec.target else "MISSED"
        summary = f"{returns.mean():.1f} ± {returns.std():.1f}, worst {returns.min():.1f}"
        print(f"{self.task} DONE {summary}, target {self.spec.target} {met}", flush=True)
        self.write(card, winner, self.notes.parent)
        self.sac.save(self.full)
        print(f"{self.task} saved", flush=True)

    def write(self, card: dict[str, Any], actor: Actor, folder: Path) -> None:
        """Leave policy, card and learner in a folder."""
        about = {"task": self.task, "env": self.spec.env, "env_kwargs": self.spec.kwargs}
        # One key, as for every policy: safetensors writes several in random order.
        words = {"rhirl": json.dumps({**about, "horizon": self.spec.horizon})}
        Policy(actor, words).save(folder / f"{self.task}.policy.safetensors")
        (folder / f"{self.task}.json").write_text(json.dumps(card))
        files.save(folder / f"{self.task}.learner.safetensors", self.sac.learner)


def versions() -> dict[str, str]:
    """Versions of what shapes an expert."""
    found = {"python": platform.python_version()}
    for package in ("jax", "equinox", "optax", "numpy", "gymnasium", "mujoco", "Box2D"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def share_gpu(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Let several processes run on one GPU at a time, where NVIDIA's MPS daemon is there and works."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        print("no MPS daemon: the learners take turns on the GPU", flush=True)
        return environment
    folder.mkdir(parents=True, exist_ok=True)
    shared = {**environment, "CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=shared, check=False)
    try:
        probe = "import jax; assert jax.devices()[0].platform == 'gpu'; print(jax.numpy.ones(3).sum())"
        subprocess.run([sys.executable, "-c", probe], env=shared, check=True, timeout=60)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env=shared, check=False, timeout=20)
        print("MPS daemon does not work: the learners take turns on the GPU", flush=True)
        return environment
    print("MPS daemon: the learners share the GPU", flush=True)
    return shared


def main() -> None:
    """Start one process per task, or be one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["ant", "walker2d", "hopper", "lunar_lander", "pendulum"])
    parser.add_argument("--out", type=Path, required=True, help="where policies, cards and learners go")
    parser.add_argument("--state", type=Path, required=True, help="where full checkpoints stay, to resume from")
    parser.add_argument("--learners", type=Path, help="an earlier --out, to go on from where --state is lost")
    parser.add_argument("--seconds", type=float, default=540, help="wall clock, evaluation included")
    parser.add_argument("--tail", type=float, default=60, help="seconds kept for the final evaluation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", action="store_true", help="train the single task named in this process")
    options = parser.parse_args()
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    options.state.mkdir(parents=True, exist_ok=True)
    if options.one:
        print(options.tasks[0], "learns on", jax.devices()[0], flush=True)
        # The backend is chosen by now; what is spawned from here on computes in NumPy and leaves the GPU alone.
        os.environ["JAX_PLATFORMS"] = "cpu"
        expert = Expert(options.tasks[0], options.seed, options.out, options.state, options.learners)
        expert.train(began + min(options.seconds - options.tail, expert.spec.seconds))
        expert.finish()
        return
    environment = {
        **os.environ,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "MUJOCO_GL": "disable",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(options.state / "compiled"),
    }
    environment = (
        share_gpu(environment, options.state.absolute() / "mps") if shutil.which("nvidia-smi") else environment
    )
    children = []
    for task in options.tasks:
        left = options.seconds - (time.monotonic() - began)
        arguments = ["--one", "--tasks", task, "--seconds", str(left), "--tail", str(options.tail)]
        arguments += ["--out", str(options.out), "--state", str(options.state), "--seed", str(options.seed)]
        arguments += ["--learners", str(options.learners)] if options.learners else []
        chosen = recipe(task).platform
        own = {**environment, "JAX_PLATFORMS": chosen} if chosen else environment
        children.append(subprocess.Popen([sys.executable, __file__, *arguments], env=own))
    failed = [task for task, child in zip(options.tasks, children, strict=True) if child.wait() != 0]
    if failed:
        raise SystemExit(f"training failed for {', '.join(failed)}; the error is printed above")


if __name__ == "__main__":
    main()
