"""Measure the frames of CarRacing: how close they are to Gymnasium's own, and how much faster they are drawn.

    python benchmarks/car_render.py --out results/bench/car-render.json

Both sides step and draw, on one thread, in alternating stretches of one run; times are those of the processor, so
that other programs do not count. Frames are compared over real driving, on and off the road, from the end of the
first second on (before that Gymnasium's camera zooms in, ours never does), with the score blackened in Gymnasium's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

from rhirl.machine import surroundings
from rhirl.simulators.car.render import View, frames
from rhirl.simulators.car.render_indicators import SCORE
from rhirl.simulators.car.track import make_track
from rhirl.simulators.car_racing import CarRacingSimulator, CarState

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
VIEWS = (View(), View(looks=8), View(2), View(2, grey=True, looks=8), View(3, grey=True, looks=8))
DRIVES = ((3, 0.02), (11, 0.08), (27, 0.2))
"""Track seeds, and how badly to steer on them."""


def main(out: Path | None = None, repetitions: int = 7, frames_per_drive: int = 150) -> None:
    """Compare and time.

    Args:
        out: Where to keep the result.
        repetitions: How often each side is timed.
        frames_per_drive: How many frames of each of three drives are compared.
    """
    drives = [_drive(seed, wander, frames_per_drive) for seed, wander in DRIVES]
    result: dict[str, Any] = {
        "command": "python benchmarks/car_render.py",
        "tracks": [seed for seed, _ in DRIVES],
        "frames": sum(len(shown) for _, _, shown in drives),
        "views": [{**asdict(view), **_errors(view, drives)} for view in VIEWS],
        **_speeds(drives[0][1], repetitions),
        **surroundings(),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n")


def _drive(seed: int, wander: float, count: int, every: int = 4) -> tuple[int, list[CarState], NDArray[np.uint8]]:
    """Follow the road for a while; return some states and what Gymnasium shows of them."""
    simulator = CarRacingSimulator()
    env = simulator.make_env()
    env.reset(seed=seed)
    inner: Any = env.unwrapped
    rng, drift, road = np.random.default_rng(seed), 0.0, np.array(inner.track)[:, 2:4]
    states, shown = [], []
    for t in range(50 + count * every):
        hull = inner.car.hull
        nearest = int(np.argmin(np.sum((road - hull.position) ** 2, axis=1)))
        side, ahead = hull.GetLocalPoint(road[(nearest + 5) % len(road)].tolist())
        drift = 0.95 * drift + wander * rng.normal()
        speed, limit = np.hypot(*hull.linearVelocity), 35 + 30 * np.sin(t / 70)
        pedal = 0.6 if speed < limit else -0.3 if speed > limit + 10 else 0.0
        frame = env.step(np.array([np.clip(2 * np.arctan2(side, ahead) + drift, -1, 1), pedal], np.float32))[0]
        if t >= 50 and t % every == 0:
            states.append(simulator.snapshot(env))
            shown.append(frame)
    masked = np.array(shown)
    masked[:, SCORE[0], SCORE[1]] = 0
    return seed, states, masked


def _errors(view: View, drives: list[tuple[int, list[CarState], NDArray[np.uint8]]]) -> dict[str, float]:
    """Compare with Gymnasium's frames; coarser views with the mean of its pixels, grey ones with their luma."""
    errors = []
    for seed, states, shown in drives:
        drawn = frames(make_track(seed), np.array([state.car for state in states]), view)
        n, side = len(shown), 96 // view.factor
        target = shown.reshape(n, side, view.factor, side, view.factor, 3).mean(axis=(2, 4))
        if view.grey:
            target = (target @ np.array([0.299, 0.587, 0.114]))[..., None]
        errors.append(np.abs(drawn - target))
    error = np.concatenate(errors)
    worst = error.max(axis=-1)
    return {
        "mean_absolute_error": round(float(error.mean()), 4),
        "off_by_more_than_8": round(float(np.mean(worst > 8)), 6),
        "off_by_more_than_16": round(float(np.mean(worst > 16)), 6),
    }


def _speeds(states: list[CarState], repetitions: int) -> dict[str, Any]:
    """Time stepping with drawing, Gymnasium's and ours by turns, from states along a drive."""
    M, K, gym_steps = 32, 15, 30
    rng = np.random.default_rng(0)
    controls = rng.uniform(-1, 1, (M, K, 2)).astype(np.float32)
    env = CarRacingSimulator().make_env()
    env.reset(seed=int(states[0].seed))
    simulators = {view: CarRacingSimulator(view=view, threads=1) for view in VIEWS}
    cars = np.array([state.car for state in states])

    def step_gymnasium() -> int:
        for control in controls[0].repeat(2, axis=0)[:gym_steps]:
            env.step(control)
        return gym_steps

    work: dict[str, Callable[[], int]] = {"gymnasium": step_gymnasium}
    for view, simulator in simulators.items():
        work[f"rollout {view}"] = partial(_roll, simulator, states, controls)
        work[f"draw {view}"] = partial(_draw, simulator, states[0].seed, cars)
    work["physics"] = lambda: sum(
        simulators[VIEWS[0]].drive(state, controls).rewards.size for state in states[:: len(states) // 4]
    )
    for run in work.values():
        run()
    rates: dict[str, list[float]] = {name: [] for name in work}
    for i in range(repetitions):
        for name in list(work) if i % 2 == 0 else reversed(list(work)):
            began = time.process_time()
            count = work[name]()
            rates[name].append(count / (time.process_time() - began))
    ratio = np.array(rates[f"rollout {VIEWS[0]}"]) / np.array(rates["gymnasium"])
    return {
        "per": "second of one core",
        "gym_steps_per_s": round(median(rates["gymnasium"])),
        "physics_steps_per_s": round(median(rates["physics"])),
        "speeds": [
            {
                **asdict(view),
                "frames_per_s": round(median(rates[f"draw {view}"])),
                "frames_per_s_with_physics": round(median(rates[f"rollout {view}"])),
            }
            for view in VIEWS
        ],
        "ratio_to_gym": round(median(ratio.tolist()), 1),
    }


def _draw(simulator: CarRacingSimulator, seed: NDArray[np.int64], cars: NDArray[np.float64]) -> int:
    return len(simulator.draw(seed, cars))


def _roll(simulator: CarRacingSimulator, states: list[CarState], controls: NDArray[np.float32]) -> int:
    chosen = states[:: len(states) // 4]
    for state in chosen:
        simulator.rollout(state, controls)
    return len(chosen) * controls.shape[0] * controls.shape[1]


if __name__ == "__main__":
    tyro.cli(main)
