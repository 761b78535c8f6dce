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
from typing import Any, Literal, NamedTuple, get_args

import gymnasium
import numpy as np
from gymnasium.envs.box2d.lunar_lander import heuristic
from numpy.typing import NDArray

from rhirl.simulators.lunar_lander import LanderState, LunarLanderSimulator

Start = Literal["snapshot", "replay", "restore"]
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
        "flight": int(rng.integers(1, max(2, episode.touched // 2))),
        "touchdown": max(1, episode.touched - int(rng.integers(1, 30))),
    }
    if episode.touched + 1 < T:
        chosen["contact"] = int(rng.integers(episode.touched, T - 1))
        chosen["rest"] = max(1, T - int(rng.integers(2, 30)))
    return chosen


def compare(
    simulator: LunarLanderSimulator, env: gymnasium.Env[Any, Any], state: LanderState, V: NDArray[np.float32]
) -> tuple[NDArray[np.float32], bool]:
    """Execute V (K, 2) in the environment, whose state is given.

    Returns the largest difference (8,) of each observation, and whether leg or hull touched the ground meanwhile.
    """
    lander: Any = env.unwrapped
    generator = np.random.Generator(type(lander.np_random.bit_generator)())
    generator.bit_generator.state = lander.np_random.bit_generator.state
    predicted = simulator.rollout(state, V[None], dispersion=generator.uniform(-1.0, 1.0, V.shape)).observations[0]
    real = np.stack([env.step(u)[0] for u in V])
    return np.abs(real - predicted[1:]).max(axis=0), bool(real[:, 6:].any() or lander.game_over)


def measure_parity(episodes: int, *, horizon: int = 40, start: Start = "snapshot") -> dict[str, Any]:
    """Compare from four starts per episode, by phase of the flight.

    The simulator starts from a snapshot of the environment, or from the exact replay of its controls; "restore"
    puts another environment into that replayed state and lets it go on. At rest the engines stay off, so that the
    lander falls asleep; otherwise controls are random. Errors are of position, velocity, angle and its velocity.
    """
    simulator = LunarLanderSimulator(threads=1)
    env, other = (simulator.make_env().unwrapped for _ in range(2))
    errors: defaultdict[str, list[NDArray[np.float32]]] = defaultdict(list)
    for seed in range(episodes):
        episode = fly(env, seed, noise=(0.0, 0.3, 1.0)[seed % 3])
        rng = np.random.default_rng(seed)
        for phase, t in starts(episode).items():
            env.reset(seed=seed)
            for u in episode.controls[:t]:
                env.step(u)
            executed = episode.controls[:t]
            state = simulator.snapshot(env) if start == "snapshot" else simulator.replay(seed, executed)
            if start == "restore":
                other.reset(seed=seed + episodes)
                simulator.restore(other, state)
            V = rng.uniform(-1, 1, (horizon, 2)).astype(np.float32)
            if phase == "rest":
                V[:] = 0
            error, touched = compare(simulator, other if start == "restore" else env, state, V)
            # Where the noisy pilot took another way, the phase is what happened.
            real_phase = phase if phase in ("contact", "rest") else "touchdown" if touched else "flight"
            errors[real_phase].append(error)
    return {phase: _summary(np.stack(errors[phase])) for phase in PHASES if phase in errors}


def _summary(error: NDArray[np.float32]) -> dict[str, float]:
    """Summarise errors (n, 8) of n rollouts."""
    moving, legs = error[:, :6].max(axis=1), error[:, 6:].max(axis=1)
    return {
        "rollouts": len(error),
        "equal_to_the_bit": int(np.sum(error.max(axis=1) == 0)),
        "legs_differ": int(np.sum(legs > 0)),
        "median_error": float(np.median(moving)),
        "p90_error": float(np.quantile(moving, 0.9)),
        "worst_error": float(moving.max()),
    }


def main() -> None:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=150)
    parser.add_argument("--horizon", type=int, default=40, help="K")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "command": shlex.join(["python", "-m", "rhirl.simulators.box2d.parity", *sys.argv[1:]]),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("numpy", "numba", "gymnasium", "Box2D")},
        "horizon": arguments.horizon,
    }
    for start in get_args(Start):
        result[start] = measure_parity(arguments.episodes, horizon=arguments.horizon, start=start)
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
