"""Measure CarRacing's simulator without drawing, against Gymnasium's own physics, in one run.

    python benchmarks/car_racing.py --out results/bench/car-physics.json

Four contestants take turns from the same states: the compiled car; Gymnasium without its drawing; Box2D's world
step alone, which is all that a faster Python could leave; and Gymnasium as it comes, which draws every step. Steps
are counted per second of processor time on one thread, which other programs disturb less than they do the clock.
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
from gymnasium.envs.box2d.car_racing import FPS, CarRacing
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import POSITION_ITERATIONS, VELOCITY_ITERATIONS
from rhirl.simulators.car.parity import pilot
from rhirl.simulators.car.track import UndrawnCarRacing, make_track
from rhirl.simulators.car_racing import CarRacingSimulator, CarState


def driving_state(simulator: CarRacingSimulator, seed: int, steps: int) -> CarState:
    """Return a state in the middle of driving."""
    state = simulator.reset(seed)
    for _ in range(steps):
        state = simulator.step(state, pilot(state.car, make_track(seed), 50.0))
    return state


def contestants(
    simulator: CarRacingSimulator, state: CarState, V: NDArray[np.float32]
) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return how many steps each makes and what does them; the slower ones do less."""
    drawn, undrawn, world = CarRacing(), UndrawnCarRacing(), UndrawnCarRacing()
    for env in (drawn, undrawn, world):
        env.reset(seed=int(state.seed))
        simulator.restore(env, state)
    actions = simulator.action(V.reshape(-1, 2))

    def step(env: CarRacing, steps: int) -> None:
        for action in actions[:steps]:
            env.step(action)

    def step_world(steps: int) -> None:
        for _ in range(steps):
            world.world.Step(1.0 / FPS, VELOCITY_ITERATIONS, POSITION_ITERATIONS)

    return {
        "compiled": (len(actions), partial(simulator.drive, state, V)),
        "gym_undrawn": (300, partial(step, undrawn, 300)),
        "world_step": (300, partial(step_world, 300)),
        "gym_drawn": (10, partial(step, drawn, 10)),
    }


def measure(samples: int, horizon: int, states: int, repetitions: int) -> dict[str, Any]:
    """Return processor steps per second of every contestant, and the compiled car's ratio to each."""
    simulator = CarRacingSimulator(threads=1)
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {"samples": samples, "horizon": horizon, "states": states, "repetitions": repetitions}
    for controls in ("uniform", "gentle"):
        seconds: defaultdict[str, list[float]] = defaultdict(list)
        for i in range(states):
            state = driving_state(simulator, i, 60 + 40 * i)
            V = rng.uniform(-1, 1, (samples, horizon, 2))
            if controls == "gentle":
                V = 0.2 * V + [0.0, 0.3]
            runs = contestants(simulator, state, V.astype(np.float32))
            for repetition in range(repetitions + 1):
                for name in list(runs)[:: -1 if repetition % 2 else 1]:
                    steps, run = runs[name]
                    began = time.process_time()
                    run()
                    if repetition > 0:
                        seconds[name].append((time.process_time() - began) / steps)
        rates = {name: 1 / statistics.median(times) for name, times in seconds.items()}
        ratios = {
            f"ratio_to_{name}": rates["compiled"] / rate for name, rate in rates.items() if name != "compiled"
        }
        result[controls] = {f"{name}_steps_per_core_s": rate for name, rate in rates.items()} | ratios
    return result


def main() -> None:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=192, help="M")
    parser.add_argument("--horizon", type=int, default=15, help="K")
    parser.add_argument("--states", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    work = {name: getattr(arguments, name) for name in ("samples", "horizon", "states", "repetitions")}
    result = {
        "command": shlex.join(["python", "benchmarks/car_racing.py", *sys.argv[1:]]),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load_average_before": round(os.getloadavg()[0], 1),
        "versions": {name: version(name) for name in ("numpy", "numba", "gymnasium", "Box2D")},
        **measure(**work),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
