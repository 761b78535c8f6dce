"""Follow learned drives of CarRacing step by step: how fast, and where they leave the road.

    python benchmarks/car_drives.py     writes results/bench/car-drives.json

Four evaluation drives that lost their way and one that did not, by the seed of the run and the number of the track.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.atomic import write_atomically
from rhirl.demos import Agent, run_episode
from rhirl.experiments.evaluate import load_agent
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import EVALUATION, episode_seeds
from rhirl.machine import surroundings

RESULTS = Path(__file__).parent.parent / "results"
DRIVES = ((0, 1), (0, 2), (0, 16), (1, 6), (1, 11))


class Watched:
    """An agent whose car is looked at before every step: speed, and whether all four wheels are on grass."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def reset(self, seed: int) -> None:
        """Begin a new drive."""
        self.agent.reset(seed)
        self.speed: list[float] = []
        self.grass: list[bool] = []

    def act(self, env: gymnasium.Env[Any, Any], observation: NDArray[Any]) -> NDArray[np.float32]:
        """Look, then act."""
        racing: Any = env.unwrapped
        car = racing.car
        self.speed.append(float(np.hypot(*car.hull.linearVelocity)))
        self.grass.append(all(not wheel.tiles for wheel in car.wheels))
        return self.agent.act(env, observation)


def follow(run_seed: int, number: int) -> dict[str, Any]:
    """Drive one evaluation track of a run that learned without noise."""
    task, agent = load_agent(RunDirectory(RESULTS / f"runs/car_racing/rhirl/noise0/seed{run_seed}"))
    watched, seed = Watched(agent), episode_seeds(EVALUATION, run_seed, number + 1)[number]
    episode = run_episode(task.make_scored_env(), watched, horizon=task.T, noise=0.0, seed=seed)
    left = next((t for t, lost in enumerate(watched.grass) if lost and t > 0), None)
    return {
        "run_seed": run_seed,
        "track": number,
        "return": episode.total,
        "steps": len(episode.controls),
        "left_the_road_at": left,
        "speed_when_leaving": None if left is None else watched.speed[left],
        "share_on_grass": float(np.mean(watched.grass)),
        "speed": np.round(watched.speed, 1).tolist(),
    }


def main() -> None:
    """Follow them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "bench/car-drives.json")
    drives = []
    out = parser.parse_args().out
    for drive in DRIVES:
        drives.append(follow(*drive))
        print({key: value for key, value in drives[-1].items() if key != "speed"}, flush=True)
    write_atomically(out, (json.dumps({"drives": drives, **surroundings()}) + "\n").encode())


if __name__ == "__main__":
    main()
