"""How fast the compiled lander is against Box2D's bare world step and Gymnasium's loop, phase by phase.

    python -m rhirl.simulators.box2d.speed --out results/bench/lunar_lander_speed.json

Contestants run in turns in one process; medians are compared. `steps_per_core_s` counts steps per second of
processor time on one thread, which other programs on the machine disturb less than they do the clock on the wall;
the speed-up by threads can only be read off that clock and is left out unless the machine is idle.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.benchmark import measure_threads
from rhirl.simulators.box2d.parity import PHASES, fly, starts
from rhirl.simulators.lunar_lander import LanderState, LunarLanderSimulator

IDLE = 0.5


def phase_states(episodes: int) -> dict[str, list[LanderState]]:
    """Collect states of landings, by phase."""
    simulator = LunarLanderSimulator(threads=1)
    env = simulator.make_env().unwrapped
    states = defaultdict(list)
    for seed in range(episodes):
        episode = fly(env, seed, noise=0.3)
        for phase, t in starts(episode).items():
            states[phase].append(simulator.replay(seed, episode.controls[:t]))
    return dict(states)


def measure_speed(states: list[LanderState], *, samples: int, horizon: int, repetitions: int) -> dict[str, float]:
    """Time rollouts of M `samples` and K `horizon` from each state; Box2D and Gymnasium do a tenth of the work."""
    simulator = LunarLanderSimulator(threads=1)
    V = np.random.default_rng(0).uniform(-1, 1, (samples, horizon, 2)).astype(np.float32)
    few = V[: max(1, samples // 10)]
    cpu: defaultdict[str, list[float]] = defaultdict(list)
    for state in states:
        runs: dict[str, Callable[[], object]] = {
            "": partial(simulator.rollout, state, V),
            "bare_": simulator.bare_rollout(state, few),
            "gym_": _gymnasium_loop(simulator, state, few),
        }
        for repetition in range(repetitions + 1):
            for name, run in runs.items():
                began = time.process_time()
                run()
                if repetition > 0:
                    cpu[name].append((time.process_time() - began) / (len(few if name else V) * horizon))
    result = {f"{name}steps_per_core_s": 1 / statistics.median(seconds) for name, seconds in cpu.items()}
    for name in ("bare", "gym"):
        result[f"ratio_to_{name}"] = result["steps_per_core_s"] / result[f"{name}_steps_per_core_s"]
    return result


def _gymnasium_loop(
    simulator: LunarLanderSimulator, state: LanderState, V: NDArray[np.float32]
) -> Callable[[], object]:
    env = simulator.make_env().unwrapped
    env.reset(seed=0)

    def run() -> None:
        for controls in V:
            simulator.restore(env, state)
            for u in controls:
                env.step(u)

    return run


def main() -> None:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="M")
    parser.add_argument("--horizon", type=int, default=40, help="K")
    parser.add_argument("--episodes", type=int, default=6)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    work: dict[str, Any] = {name: getattr(arguments, name) for name in ("samples", "horizon", "repetitions")}
    load = os.getloadavg()[0]
    states = phase_states(arguments.episodes)
    result: dict[str, Any] = {
        "command": shlex.join(["python", "-m", "rhirl.simulators.box2d.speed", *sys.argv[1:]]),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load_average_before": round(load, 1),
        "versions": {name: version(name) for name in ("numpy", "numba", "gymnasium", "Box2D")},
        **work,
    }
    result |= {phase: measure_speed(states[phase], **work) for phase in PHASES}
    if load < IDLE:
        result |= measure_threads(lambda threads: LunarLanderSimulator(threads=threads), **work)
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
