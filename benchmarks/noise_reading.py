"""What does the paper's "Σ = 0.2 / 0.5" mean? Ask which reading makes our experts fall as far as the paper's did.

    python benchmarks/noise_reading.py

The paper disturbs the expert's control with Gaussian noise and prints the returns that are left. Σ may be a
variance or a standard deviation, in the environment's own action units or in [-1, 1] units. Each reading is played
by our experts, trained without noise, in the plain environments. With ρ = R(Σ) / R(0) the part of the return that
is left (Pendulum: (R + 600) / (R(0) + 600), the paper's own normalisation), a reading's misfit is

    Σ over tasks and both noise levels of (ρ_ours - ρ_paper)²

and the episodes are resampled to see how often each reading would have won. Because the rule after a fall decides
what a noisy walker earns, the walkers are played twice: ending at a fall, and going on after it.
Written to `--out`: `results.json` (every return) and `table.md`.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny matrices: more threads only get in the way

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import rhirl
from rhirl.demos import run_episode
from rhirl.rl import Policy

EXPERTS = Path(rhirl.__file__).parent / "tasks" / "experts"
SEED = 4_000_000
LEVELS = (0.2, 0.5)


@dataclass(frozen=True)
class Task:
    """A task, with the paper's expert returns at Σ = 0, 0.2 and 0.5."""

    env_id: str
    horizon: int
    paper: tuple[float, float, float]
    zero: float = 0.0
    kwargs: dict[str, Any] = field(default_factory=dict)
    walks: bool = False

    def ratios(self, returns: list[float]) -> list[float]:
        """What is left of the noise-free return `returns[0]` at each noise level."""
        return [(r - self.zero) / (returns[0] - self.zero) for r in returns[1:]]


TASKS = {
    "pendulum": Task("Pendulum-v1", 100, (-155, -157, -169), zero=-600),
    "lunar_lander": Task("LunarLander-v3", 250, (235, 223, 165), kwargs={"continuous": True}),
    "hopper": Task("Hopper-v5", 1000, (3222, 3159, 2888), walks=True),
    "walker2d": Task("Walker2d-v5", 1000, (4999, 4500, 3624), walks=True),
    "ant": Task("Ant-v5", 1000, (5759, 2557, 253), walks=True),
}

# (level, half the width of the action box) → standard deviation in [-1, 1] units
READINGS: dict[str, Callable[[float, float], float]] = {
    "variance, [-1, 1] units": lambda level, half: level**0.5,
    "variance, raw units": lambda level, half: level**0.5 / half,
    "deviation, [-1, 1] units": lambda level, half: level,
    "deviation, raw units": lambda level, half: level / half,
}


@dataclass(frozen=True)
class Expert:
    """A trained policy that acts without looking at the environment."""

    policy: Policy

    def reset(self, seed: int) -> None:
        """Nothing to forget: the policy has no memory."""

    def act(self, env: gymnasium.Env[Any, Any], observation: NDArray[Any]) -> NDArray[np.float32]:
        """Return the deterministic control."""
        return self.policy.act(observation)


def play(name: str, episodes: int, **kwargs: Any) -> dict[str, Any]:
    """Let the expert of a task act at every noise some reading asks for; the seeds are the same for each."""
    task = TASKS[name]
    env = gymnasium.make(task.env_id, **task.kwargs, **kwargs)
    assert isinstance(env.action_space, gymnasium.spaces.Box)
    half = float((env.action_space.high - env.action_space.low).max() / 2)
    expert = Expert(Policy.load(EXPERTS / f"{name}.policy.safetensors"))
    played: dict[str, Any] = {}
    for noise in sorted({0.0} | {reading(level, half) for level in LEVELS for reading in READINGS.values()}):
        runs = [run_episode(env, expert, horizon=task.horizon, noise=noise, seed=SEED + i) for i in range(episodes)]
        played[key(noise)] = {
            "returns": [round(run.total, 3) for run in runs],
            "lengths": [len(run.controls) for run in runs],
        }
        mean, steps = (np.mean(played[key(noise)][what]) for what in ("returns", "lengths"))
        print(f"{name:13} deviation {noise:<8.3g} return {mean:8.1f} in {steps:5.0f} steps", flush=True)
    return {"half_width": half, "deviations": played}


def key(noise: float) -> str:
    """Name a deviation in the results: readings that agree share their episodes."""
    return f"{noise:.6g}"


def returns_of(name: str, played: dict[str, Any], reading: str, chosen: NDArray[np.int64]) -> list[float]:
    """Mean returns of a task at Σ = 0, 0.2, 0.5 under a reading, over the chosen episodes."""
    noises = [0.0] + [READINGS[reading](level, played["half_width"]) for level in LEVELS]
    return [float(np.mean(np.array(played["deviations"][key(noise)]["returns"])[chosen])) for noise in noises]


def compare(played: dict[str, dict[str, Any]], episodes: int, resamples: int = 1000) -> dict[str, Any]:
    """Return each reading's returns, ratios and misfit, and how often it wins when episodes are resampled."""

    def misfit(reading: str, chosen: NDArray[np.int64]) -> float:
        ours = [TASKS[name].ratios(returns_of(name, played[name], reading, chosen)) for name in TASKS]
        paper = [task.ratios(list(task.paper)) for task in TASKS.values()]
        return float(np.sum((np.array(ours) - np.array(paper)) ** 2))

    everyone = np.arange(episodes)
    rng = np.random.default_rng(0)
    draws = [rng.integers(episodes, size=episodes) for _ in range(resamples)]
    winners = np.argmin([[misfit(reading, draw) for reading in READINGS] for draw in draws], axis=1)
    result: dict[str, Any] = {}
    for i, reading in enumerate(READINGS):
        returns = {name: returns_of(name, played[name], reading, everyone) for name in TASKS}
        result[reading] = {
            "returns": returns,
            "ratios": {name: TASKS[name].ratios(values) for name, values in returns.items()},
            "misfit": misfit(reading, everyone),
            "wins": float(np.mean(winners == i)),
        }
    return result


def table(comparison: dict[str, Any]) -> str:
    """Lay a comparison out as Markdown: what is left of the return at Σ = 0.2 → 0.5."""
    lines = [
        "| reading | " + " | ".join(TASKS) + " | misfit | wins |",
        "|---|" + "---|" * (len(TASKS) + 2),
    ]
    paper = [task.ratios(list(task.paper)) for task in TASKS.values()]
    lines.append("| the paper | " + " | ".join(f"{a:.2f} → {b:.2f}" for a, b in paper) + " | | |")
    for reading, result in comparison.items():
        cells = " | ".join(f"{a:.2f} → {b:.2f}" for a, b in result["ratios"].values())
        lines.append(f"| {reading} | {cells} | {result['misfit']:.2f} | {result['wins']:.0%} |")
    return "\n".join(lines)


def main() -> None:
    """Play every reading, compare, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/noise_reading"))
    arguments = parser.parse_args()
    ends = {name: play(name, arguments.episodes) for name in TASKS}
    goes_on = ends | {
        name: play(name, arguments.episodes, terminate_when_unhealthy=False)
        for name, task in TASKS.items()
        if task.walks
    }
    rules = {"ends at a fall": ends, "goes on after a fall": goes_on}
    comparisons = {rule: compare(played, arguments.episodes) for rule, played in rules.items()}
    results = {
        "episodes": arguments.episodes,
        "seeds": [SEED, SEED + arguments.episodes - 1],
        "versions": {package: version(package) for package in ("numpy", "gymnasium", "mujoco", "Box2D")},
        "paper": {name: task.paper for name, task in TASKS.items()},
        "played": rules,
        "comparison": comparisons,
        "verdict": {rule: min(c, key=lambda r: c[r]["misfit"]) for rule, c in comparisons.items()},
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = "\n\n".join(f"An episode {rule}:\n\n{table(c)}" for rule, c in comparisons.items()) + "\n"
    (arguments.out / "table.md").write_text(text)
    print(text, json.dumps(results["verdict"]))


if __name__ == "__main__":
    main()
