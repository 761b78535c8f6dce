"""Ask how much control noise an expert survives that was trained without it, at different temperatures.

    python benchmarks/noise_expert.py

The paper's Hopper expert keeps 90 % of its return at Σ = 0.5, ours falls at once (see `noise_reading.py`). Ours was
trained with a learned temperature, which leaves little entropy in the end; the paper's SAC baselines have a fixed
α = 0.2 and a reward scale of 0.2, together α = 1 for unscaled rewards. Here small SAC experts with α = 0.2 and
α = 1 are trained on Hopper without noise, and on their way the deterministic actors are played under noise, at the
standard deviations that Σ = 0.2 and 0.5 mean if read as deviations (0.2, 0.5) or as variances (0.447, 0.707).
Written to `--out`: `hopper_temperature.json`.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny matrices: more threads only get in the way

from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.demos import run_episode
from rhirl.rl import SAC, Policy, SACConfig

DEVIATIONS = (0.0, 0.2, 0.5, 0.2**0.5, 0.5**0.5)
SEED = 4_000_000


class Expert:
    """A trained policy that acts without looking at the environment."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def reset(self, seed: int) -> None:
        """Nothing to forget: the policy has no memory."""

    def act(self, env: gymnasium.Env[Any, Any], observation: NDArray[Any]) -> NDArray[np.float32]:
        """Return the deterministic control."""
        return self.policy.act(observation)


def play(policy: Policy, episodes: int) -> dict[str, list[float]]:
    """Return the returns of a policy at every deviation."""
    env, expert = gymnasium.make("Hopper-v5"), Expert(policy)
    return {
        f"{sigma:.3g}": [
            round(run_episode(env, expert, horizon=1000, noise=sigma, seed=SEED + i).total, 1)
            for i in range(episodes)
        ]
        for sigma in DEVIATIONS
    }


def train(temperature: float, steps: int, every: int, episodes: int) -> list[dict[str, Any]]:
    """Train without noise and play on the way."""
    config = SACConfig(
        hidden=(64, 64),
        batch=128,
        learning_rate=1e-3,
        temperature=temperature,
        envs=8,
        round_steps=8,
        random_steps=5_000,
    )
    sac = SAC(config, partial(gymnasium.make, "Hopper-v5"), horizon=1000)
    snapshots: list[dict[str, Any]] = []
    while sac.steps < steps:
        sac.round()
        if sac.steps // every > len(snapshots):
            returns = play(sac.policy(), episodes)
            snapshots.append({"temperature": temperature, "steps": sac.steps, "returns": returns})
            means = "  ".join(f"σ {sigma}: {np.mean(r):5.0f}" for sigma, r in returns.items())
            print(f"α {temperature:g}  {sac.steps:7d} steps  {means}", flush=True)
    return snapshots


def main() -> None:
    """Train, play and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.2, 1.0])
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--every", type=int, default=50_000)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/noise_reading"))
    arguments = parser.parse_args()
    snapshots = [
        snapshot
        for temperature in arguments.temperatures
        for snapshot in train(temperature, arguments.steps, arguments.every, arguments.episodes)
    ]
    results = {
        "env_id": "Hopper-v5",
        "seeds": [SEED, SEED + arguments.episodes - 1],
        "versions": {package: version(package) for package in ("numpy", "jax", "gymnasium", "mujoco")},
        "snapshots": snapshots,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "hopper_temperature.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
