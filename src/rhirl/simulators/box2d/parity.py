"""How far this machine's Box2D is from the compiled lander, from flight to rest.

    python -m rhirl.simulators.box2d.parity --out results/bench/lunar_lander_parity.json

A noisy pilot flies the real environment for a while. From there the environment executes K = 40 more controls, and
the simulator rolls out the same ones with the same engine dispersion. All eight observations of every step are
compared.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.box2d.lunar_lander import heuristic
from numpy.typing import NDArray

from rhirl.simulators.lunar_lander import LanderState, LunarLanderSimulator

PHASES = ("flight", "touchdown", "contact", "rest")


class Episode(NamedTuple):
    """The controls (T, 2) a pilot executed until the environment ended, and after how many the lander touched."""

    seed: int
    controls: NDArray[np.float32]
    touched: int


def fly(env: gymnasium.Env[Any, Any], seed: int, noise: float) -> Episode:
    """Let Gymnasium's own pilot land with Gaussian noise on its controls."""
    pilot: Callable[..., NDArray[Any]] = heuristic
    rng = np.random.default_rng(seed)
    x, _ = env.reset(seed=seed)
    controls: list[NDArray[np.float32]] = []
    touched, over = -1, False
    while not over and len(controls) < 400:
        u = np.clip(pilot(env, x) + noise * rng.standard_normal(2), -1, 1).astype(np.float32)
        x, _, over, _, _ = env.step(u)
        controls.append(u)
        if touched < 0 and x[6:].any():
            touched = len(controls)
    return Episode(seed, np.array(controls), touched if touched > 0 else len(controls))


def starts(episode: Episode) -> dict[str, int]:
    """Choose after how many controls of an episode each phase is entered."""
    T = len(episode.controls)
    rng = np.random.default_rng(episode.seed)
    chosen = {
        "flight": int(rng.integers(1, max(2, episode.touched - 45))),
        "touchdown": max(1, episode.touched - int(rng.integers(1, 30))),
    }
    if episode.touched + 1 < T:
        chosen["contact"] = int(rng.integers(episode.touched, T - 1))
        chosen["rest"] = max(1, T - int(rng.integers(2, 30)))
    return chosen


def compare(
    simulator: LunarLanderSimulator, env: gymnasium.Env[Any, Any], state: LanderState, V: NDArray[np.float32]
) -> tuple[float, bool]:
    """Execute V (K, 2) in the environment, whose state is given.

    Returns the largest difference of any observation, and whether a leg or the hull touched the ground meanwhile.
    """
    generator = np.random.Generator(type(env.unwrapped.np_random.bit_generator)())
    generator.bit_generator.state = env.unwrapped.np_random.bit_generator.state
    predicted = simulator.rollout(state, V[None], dispersion=generator.uniform(-1.0, 1.0, V.shape)).observations[0]
    real = np.stack([env.step(u)[0] for u in V])
    lander: Any = env.unwrapped
    return float(np.abs(real - predicted[1:]).max()), bool(real[:, 6:].any() or lander.game_over)


def measure_parity(episodes: int, *, horizon: int = 40, replay: bool = False) -> dict[str, Any]:
    """Compare from four starts per episode, by phase of the flight.

    The simulator starts from a snapshot of the environment, or with `replay` from the exact replay of its controls.
    At rest the engines stay off, so that the lander falls asleep; otherwise controls are random.
    """
    simulator = LunarLanderSimulator(threads=1)
    env: gymnasium.Env[Any, Any] = simulator.make_env().unwrapped
    errors: defaultdict[str, list[float]] = defaultdict(list)
    for seed in range(episodes):
        episode = fly(env, seed, noise=(0.0, 0.3, 1.0)[seed % 3])
        rng = np.random.default_rng(seed)
        for phase, t in starts(episode).items():
            env.reset(seed=seed)
            for u in episode.controls[:t]:
                env.step(u)
            state = simulator.replay(seed, episode.controls[:t]) if replay else simulator.snapshot(env)
            V = rng.uniform(-1, 1, (horizon, 2)).astype(np.float32)
            if phase == "rest":
                V[:] = 0
            error, touched = compare(simulator, env, state, V)
            # Where the noisy pilot took another way, the phase is what happened.
            real_phase = phase if phase in ("contact", "rest") else "touchdown" if touched else "flight"
            errors[real_phase].append(error)
    return {
        phase: {
            "rollouts": len(errors[phase]),
            "equal_to_the_bit": int(np.sum(np.equal(errors[phase], 0))),
            "median_error": float(np.median(errors[phase])),
            "worst_error": float(np.max(errors[phase])),
        }
        for phase in PHASES
    }


def main() -> None:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=150)
    parser.add_argument("--horizon", type=int, default=40, help="K")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    result = {
        "command": shlex.join(["python", "-m", "rhirl.simulators.box2d.parity", *sys.argv[1:]]),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("numpy", "numba", "gymnasium", "Box2D")},
        "horizon": arguments.horizon,
        "from_snapshot": measure_parity(arguments.episodes, horizon=arguments.horizon),
        "from_replay": measure_parity(arguments.episodes, horizon=arguments.horizon, replay=True),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
