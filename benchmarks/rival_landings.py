"""How the rivals' episodes on LunarLander end, and what their costs say about it.

    python benchmarks/rival_landings.py       writes results/bench/rival-landings.json

A crash leaves the lander on the pad, both legs on the ground and without speed: nearly the state in which a good
landing ends. So each cost g is asked about three places: where the run's own crashes end, where the expert ends in
the same episodes, and the states on the way.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from rhirl.atomic import write_atomically
from rhirl.costs import load_cost
from rhirl.demos import Agent, run_episode
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.evaluate import load_agent
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import EVALUATION, episode_seeds
from rhirl.machine import surroundings
from rhirl.tasks import get_task

RESULTS = Path(__file__).parent.parent / "results"
TASK = get_task("lunar_lander")
States = NDArray[np.float32]


class Landing(NamedTuple):
    """One episode."""

    end: str
    """`crash`, `rest`, or `time is up`."""
    total: float
    """Return."""
    x: States
    """Observations (steps + 1, 8)."""


def land(agent: Agent, noise: float, seed: int, episodes: int) -> list[Landing]:
    """Act in the first evaluation episodes of a run seed."""
    env = TASK.make_env()
    found = []
    for start in episode_seeds(EVALUATION, seed, episodes):
        episode = run_episode(env, agent, horizon=TASK.T, noise=noise, seed=start)
        world: Any = env.unwrapped
        end = "crash" if world.game_over else "time is up" if world.lander.awake else "rest"
        found.append(Landing(end, episode.total, np.asarray(episode.observations)))
    env.close()
    return found


def ends(landings: list[Landing], *, crashed: bool) -> States:
    """Return the last states (n, 8) of episodes that crashed, or of those that did not."""
    return np.array([one.x[-1] for one in landings if (one.end == "crash") == crashed])


def judged(run: RunDirectory, own: list[Landing], experts: list[Landing]) -> dict[str, float]:
    """Return the mean of a run's cost in the three places; without a crash there is nothing to ask."""
    crashes = ends(own, crashed=True)
    if not run.cost.exists() or not len(crashes):
        return {}
    g = load_cost(run.cost)
    places = {
        "cost_of_crashes": crashes,
        "cost_of_experts_ends": ends(experts, crashed=False),
        "cost_on_the_way": np.concatenate([one.x for one in own]),
    }
    return {name: float(g(jnp.asarray(x)).mean()) for name, x in places.items()}


def main() -> None:
    """Let the expert and every run land in the same episodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20, help="of each run")
    parser.add_argument("--out", type=Path, default=RESULTS / "bench/rival-landings.json")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for noise, seed in ((noise, seed) for noise in (0.0, 0.5) for seed in range(3)):
        experts = land(expert_agent(TASK, noise), noise, seed, options.episodes)
        for method in ("expert", "firl", "airl", "gail", "bc"):
            run = RunDirectory(RESULTS / f"runs/lunar_lander/{method}/noise{noise:g}/seed{seed}")
            own = experts if method == "expert" else land(load_agent(run)[1], noise, seed, options.episodes)
            row: dict[str, Any] = {"method": method, "noise": noise, "seed": seed, **judged(run, own, experts)}
            row |= {"crashes": sum(one.end == "crash" for one in own), "episodes": len(own)}
            print(row, flush=True)
            row["landings"] = [(one.end, len(one.x) - 1, one.total, one.x[-1].tolist()) for one in own]
            rows.append(row)
    document = {"landing": ["end", "steps", "return", "last state"], "runs": rows, **surroundings()}
    write_atomically(options.out, (json.dumps(document) + "\n").encode())


if __name__ == "__main__":
    main()
