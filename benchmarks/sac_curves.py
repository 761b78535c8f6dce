"""Learning curves of our SAC beside those of stable-baselines3, at stable-baselines3's default settings.

    python benchmarks/sac_curves.py train Pendulum-v1 --steps 8000 --out results/sac_curves/raw/pendulum.json
    python benchmarks/sac_curves.py compare results/sac_curves/raw/pendulum.json

`train` runs every seed of both libraries in a process of its own, side by side, and keeps the returns of all
training episodes. stable-baselines3 may live in another interpreter (`--python`); settings are equal: one
environment, one update a step, batch 256, (256, 256), Adam 3e-4, γ 0.99, τ 0.005, learned temperature, 100 random
steps.

`compare` applies the rule. A seed's curve is, at 40 points evenly spread over the steps that all seeds reached, the
mean return of the episodes that ended within the last eighth of that range. Our curve is the mean over our seeds.
At a point it is inside when it lies between the least and the greatest of stable-baselines3's seeds. Where both
libraries learn alike this holds at 86 points of 100 on average (five seeds each), in long stretches because
neighbouring points share episodes. The curves agree when three quarters of the points are inside, and so is the
mean of the whole curve.
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
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

POINTS, WINDOW, SHARE = 40, 1 / 8, 3 / 4
Episodes = list[tuple[int, float]]
"""(step at which it ended, return) of every training episode."""


def train_ours(env: str, seed: int, steps: int, goes_on: Callable[[int, Episodes], bool]) -> None:
    """Train our SAC; the defaults of its configuration are those of stable-baselines3."""
    from rhirl.rl import SAC, SACConfig

    horizon = gymnasium.spec(env).max_episode_steps
    assert horizon is not None
    sac = SAC(SACConfig(seed=seed), partial(gymnasium.make, env, disable_env_checker=True), horizon)
    for done in sac.train(steps):
        if not goes_on(done.steps, [(done.steps, float(value)) for value in done.returns]):
            break


def train_sb3(env: str, seed: int, steps: int, goes_on: Callable[[int, Episodes], bool]) -> None:
    """Train stable-baselines3's SAC as it comes."""
    SAC = import_module("stable_baselines3").SAC

    def watch(local: dict[str, Any], _: dict[str, Any]) -> bool:
        now = local["self"].num_timesteps
        return goes_on(now, [(now, float(info["episode"]["r"])) for info in local["infos"] if "episode" in info])

    SAC("MlpPolicy", env, seed=seed, device="cpu").learn(steps, callback=watch)


TRAIN = {"ours": train_ours, "sb3": train_sb3}


def train_one(library: str, env: str, seed: int, steps: int, seconds: float, cores: str, out: Path) -> None:
    """Train one seed until its steps or its time are over; its file is written every twenty seconds."""
    os.sched_setaffinity(0, map(int, cores.split(",")))
    began = told = time.monotonic()
    episodes: Episodes = []

    def goes_on(now: int, ended: Episodes) -> bool:
        nonlocal told
        episodes.extend(ended)
        clock = time.monotonic()
        over = now >= steps or clock - began > seconds
        if over or clock - told > 20:
            told = clock
            run = {"library": library, "seed": seed, "steps": now, "seconds": clock - began, "episodes": episodes}
            out.with_suffix(".new").write_text(json.dumps(run))
            out.with_suffix(".new").replace(out)
        return not over

    TRAIN[library](env, seed, steps, goes_on)


def train(options: argparse.Namespace) -> None:
    """Run all seeds, as many at once as asked for, and keep gathering their files into one."""
    began = time.monotonic()
    waiting = [("sb3", seed) for seed in range(options.seeds)] + [
        ("ours", seed) for seed in range(options.our_seeds)
    ]
    running: list[subprocess.Popen] = []
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        while waiting or any(child.poll() is None for child in running):
            while waiting and sum(child.poll() is None for child in running) < options.at_once:
                library, seed = waiting.pop(0)
                file = f"{folder}/{library}{seed}.json"
                seconds = options.seconds - (time.monotonic() - began)
                job = [library, options.env, seed, options.steps, seconds, cores(options, library, seed), file]
                threads = str(options.threads if library == "sb3" else 1)
                environment = {
                    **os.environ,
                    "OMP_NUM_THREADS": threads,
                    "MKL_NUM_THREADS": threads,
                    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
                    "MUJOCO_GL": "disable",
                }
                python = options.python if library == "sb3" else sys.executable
                running.append(subprocess.Popen([python, __file__, "one", *map(str, job)], env=environment))
            time.sleep(2)
            gather(options, Path(folder))
    if any(child.returncode for child in running):
        raise SystemExit("a training failed; its error is printed above")


def cores(options: argparse.Namespace, library: str, seed: int) -> str:
    """Give each seed of stable-baselines3 cores of its own, and ours the rest, where there are enough for that."""
    there = sorted(os.sched_getaffinity(0))
    theirs = options.threads * options.seeds
    if len(there) > theirs:
        there = there[theirs:] if library == "ours" else there[options.threads * seed :][: options.threads]
    return ",".join(map(str, there))


def gather(options: argparse.Namespace, folder: Path) -> None:
    """Write what there is so far, with the command less what concerns this machine alone."""
    runs = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    keys = ("steps", "seconds", "seeds", "our_seeds", "threads", "at_once")
    given = " ".join(f"--{key.replace('_', '-')} {getattr(options, key):g}" for key in keys)
    command = f"python benchmarks/sac_curves.py train {options.env} {given} --out {options.out.name}"
    options.out.write_text(json.dumps({"env": options.env, "command": command, "runs": runs}))


def smooth(episodes: Episodes, grid: np.ndarray) -> np.ndarray:
    """Mean return, at every step of the grid, of the episodes that ended in the window before; NaN without any."""
    ends, returns = np.array(episodes, float).reshape(-1, 2).T
    width = WINDOW * grid[-1]
    inside = [(ends > step - width) & (ends <= step) for step in grid]
    return np.array([returns[chosen].mean() if chosen.any() else np.nan for chosen in inside])


def compare(options: argparse.Namespace) -> None:
    """Apply the rule, print it with its numbers, and draw the curves."""
    data = json.loads(options.file.read_text())
    last = min(run["steps"] for run in data["runs"])
    grid = np.linspace(0, last, POINTS + 1)[1:]
    curves = {
        library: np.stack([smooth(run["episodes"], grid) for run in data["runs"] if run["library"] == library])
        for library in ("ours", "sb3")
    }
    judged = ~np.isnan(np.concatenate(list(curves.values()))).any(0)
    if not judged.any():
        raise SystemExit(f"no step up to {last} at which every seed has ended an episode; train for longer")
    ours, theirs = (curves[library][:, judged] for library in ("ours", "sb3"))
    middle = ours.mean(0)
    inside = (middle >= theirs.min(0)) & (middle <= theirs.max(0))
    whole, others = middle.mean(), theirs.mean(1)
    verdict = {
        "env": data["env"],
        "steps": last,
        "seeds": {"ours": len(ours), "sb3": len(theirs)},
        "points": int(judged.sum()),
        "share_inside": round(float(inside.mean()), 3),
        "whole_curve": {
            "ours": round(float(whole), 1),
            "our_seeds": ours.mean(1).round(1).tolist(),
            "sb3_seeds": others.round(1).tolist(),
        },
        "end": {"our_seeds": ours[:, -1].round(1).tolist(), "sb3_seeds": theirs[:, -1].round(1).tolist()},
        "agrees": bool(inside.mean() >= SHARE and others.min() <= whole <= others.max()),
        "command": data["command"],
    }
    print(json.dumps(verdict, indent=2))
    name = options.file.stem
    folder = options.file.parent.parent
    (folder / f"{name}.json").write_text(json.dumps(verdict, indent=2) + "\n")
    draw(folder / f"{name}.png", data["env"], grid[judged], ours, theirs)


def draw(file: Path, env: str, grid: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Draw the spread of the other library's seeds with our seeds and their mean over it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.fill_between(
        grid, theirs.min(0), theirs.max(0), color="0.85", label="stable-baselines3, least to greatest"
    )
    axes.plot(grid, theirs.T, color="0.6", lw=0.8)
    axes.plot(grid, ours.T, color="tab:blue", lw=0.8, alpha=0.5)
    axes.plot(grid, ours.mean(0), color="tab:blue", lw=2, label=f"ours, mean of {len(ours)} seeds")
    axes.set(title=env, xlabel="environment steps = updates", ylabel="training return")
    axes.legend()
    figure.savefig(file, dpi=120)


def main() -> None:
    """Train, or compare what was trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("train", help="train all seeds of both libraries")
    verb.add_argument("env", help="a Gymnasium environment")
    verb.add_argument("--steps", type=int, required=True)
    verb.add_argument("--seconds", type=float, default=float("inf"), help="wall clock for everything")
    verb.add_argument("--seeds", type=int, default=5, help="of stable-baselines3")
    verb.add_argument("--our-seeds", type=int, default=5)
    verb.add_argument("--threads", type=int, default=1, help="for each seed of stable-baselines3")
    verb.add_argument("--at-once", type=int, default=100, help="trainings side by side")
    verb.add_argument("--python", default=sys.executable, help="the interpreter that has stable-baselines3")
    verb.add_argument("--out", type=Path, required=True)
    verb = verbs.add_parser("one", help="train one seed (what `train` starts)")
    verb.add_argument("library", choices=TRAIN)
    verb.add_argument("env")
    verb.add_argument("seed", type=int)
    verb.add_argument("steps", type=int)
    verb.add_argument("seconds", type=float)
    verb.add_argument("cores")
    verb.add_argument("out", type=Path)
    verb = verbs.add_parser("compare", help="apply the rule and draw the curves")
    verb.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.verb == "one":
        train_one(**{key: value for key, value in vars(options).items() if key != "verb"})
    elif options.verb == "train":
        train(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
