"""Does an ant that keeps still lie on its back, and what does it save? Ask a run's danger and its proposal.

python benchmarks/resign.py results/runs/ant/rhirl/noise0.5/seed0

A hundred systems are led by the proposal alone; of those windows of `beyond` states that are wholly on the back
or wholly on the legs, how many are farther from the experts than any demonstration (`rhirl.learning.resign`)? Then
forty episodes on training seeds: what a step on the back pays an ant that goes on, and one that keeps still.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import tyro
from numpy.typing import NDArray

from rhirl.costs import load_cost
from rhirl.demos.collect import disturbed, to_action
from rhirl.experiments.plan import find_demos
from rhirl.experiments.presets import build
from rhirl.experiments.run import RunDirectory
from rhirl.learning import Config, Danger, Episodes
from rhirl.rl import Policy
from rhirl.simulators import lead
from rhirl.tasks import get_task

SYSTEMS, LED, EPISODES, FIRST, SURE = 100, 400, 40, 900, 20


def upright(x: NDArray[Any]) -> NDArray[Any]:
    """Return the vertical part of the torso's own upward axis, from the quaternion of an observation (..., n)."""
    return 1.0 - 2.0 * (x[..., 2] ** 2 + x[..., 3] ** 2)


def windows(values: NDArray[Any], H: int) -> NDArray[Any]:
    """Cut rows (..., L) into windows (..., L − H + 1, H)."""
    return np.lib.stride_tricks.sliding_window_view(values, H, axis=-1)


def judge(run: RunDirectory) -> str:
    """Tell how often an ant on its back, and one on its legs, would keep still."""
    asked = run.config()
    task, config = get_task(asked.task), build(Config, asked.hyper)
    demos = find_demos(asked.task, asked.noise, None, asked.episodes).quorate(config.quorum)
    simulator, H = task.simulator(), config.beyond
    episodes = Episodes(simulator, demos, config, seed=7)
    starts = [episodes.begin(i).system for i in range(SYSTEMS)]
    led = lead(simulator, starts, Policy.load(run.policy).act, asked.noise, LED, seed=5)
    g = windows(np.asarray(load_cost(run.cost)(jnp.asarray(led.observations))), H).mean(axis=-1)
    up = windows(upright(led.observations), H)
    there = np.arange(LED + 2 - H) + H - 1 <= led.lasted[:, None]
    bound = Danger.load(run.danger).farthest
    still = g > bound
    back, legs = there & (up < 0).all(axis=-1), there & (up > 0).all(axis=-1)
    return (
        f"ḡ_E {bound:.3f}; keeps still on the back {still[back].mean():.3f}, on the legs {still[legs].mean():.3f}"
    )


def paid(run: RunDirectory, *, still: bool) -> float:
    """Return the mean reward of a step on the back, of an ant that keeps still there or goes on."""
    asked, policy = run.config(), Policy.load(run.policy)
    task = get_task(asked.task)
    env, rewards = task.make_scored_env(), []
    for seed in range(FIRST, FIRST + EPISODES):
        rng, lying = np.random.default_rng(seed), 0
        x, _ = env.reset(seed=seed)
        for _ in range(task.T):
            lying = lying + 1 if upright(x) < 0 else 0
            resting = still and lying >= SURE
            u = np.zeros(task.control_dim, np.float32) if resting else np.asarray(policy.act(x), np.float32)
            x, reward, terminated, _, _ = env.step(to_action(env, disturbed(u, asked.noise, rng)))
            if lying >= SURE:
                rewards.append(float(reward))
            if terminated:
                break
    env.close()
    return float(np.mean(rewards))


def main(*paths: tyro.conf.Positional[Path]) -> None:
    """Print a line a run."""
    for path in paths:
        run = RunDirectory(path)
        going_on, keeping_still = paid(run, still=False), paid(run, still=True)
        print(
            f"{path}: {judge(run)}; a step on the back pays {going_on:.2f}, still {keeping_still:.2f}", flush=True
        )


if __name__ == "__main__":
    tyro.cli(main)
