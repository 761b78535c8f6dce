"""How far this machine's Gymnasium is from the compiled car: on the road, on grass, steering at its limit, at rest.

    python -m rhirl.simulators.car.parity --out results/bench/car-parity.json

A clumsy pilot drives the real environment. Now and then the environment executes K = 15 random controls, and the
simulator rolls out the same ones from a snapshot. All numbers of the state are compared after every step, with the
tiles visited, the reward and the end of the episode.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.car import state as s
from rhirl.simulators.car.bridge import read_car
from rhirl.simulators.car.scene import UPPER_ANGLE
from rhirl.simulators.car.state import body_origin, joint_angle
from rhirl.simulators.car.track import Track, UndrawnCarRacing, make_track
from rhirl.simulators.car_racing import CarRacingSimulator

PHASES = ("road", "grass", "limit", "rest")


def phase_of(car: NDArray[np.float64]) -> str:
    """Say what a car (STATE_DIM,) is doing."""
    if np.hypot(car[s.VX], car[s.VY]) < 0.1:
        return "rest"
    if max(abs(joint_angle(car, wheel)) for wheel in (0, 1)) >= UPPER_ANGLE:
        return "limit"
    return "road" if car[[s.WHEEL + 4 * i + s.ON_ROAD for i in range(s.WHEELS)]].any() else "grass"


def pilot(car: NDArray[np.float64], track: Track, speed: float) -> NDArray[np.float32]:
    """Steer towards the road three tiles ahead and hold a speed (m/s): the two controls."""
    place = body_origin(car)
    nearest = int(np.argmin(np.hypot(*(track.line[:, 2:] - place).T)))
    ahead = track.line[(nearest + 3) % len(track.line), 2:] - place
    bearing = np.arctan2(-ahead[0], ahead[1]) - car[s.ANGLE]
    off = (bearing + np.pi) % (2 * np.pi) - np.pi
    pedal = 0.05 * (speed - np.hypot(car[s.VX], car[s.VY]))
    return np.clip([-2.0 * off, pedal], -1.0, 1.0).astype(np.float32)


def compare(
    simulator: CarRacingSimulator, env: UndrawnCarRacing, V: NDArray[np.float32]
) -> tuple[float, int, int, int]:
    """Execute V (K, 2) in the environment and roll it out from a snapshot.

    Returns the largest difference of any number that describes bodies, hinges and wheels, and in how many steps the
    visited or painted tiles, the reward or score, and the end of the episode differ.
    """
    drive = simulator.drive(simulator.snapshot(env), V[None], trail=True)
    real, rewards = [], []
    over: list[bool] = []
    for action in simulator.action(V):
        _, reward, terminated, _, _ = env.step(action)
        real.append(read_car(env))
        rewards.append(reward)
        over.append(terminated or (bool(over) and over[-1]))
    cars = np.array(real)
    apart = np.abs(drive.cars[0] - cars)
    live = ~np.concatenate([[False], over[:-1]])
    return (
        float(apart[:, : s.TIME].max()),
        int((apart[:, s.VISITED :] != 0).any(axis=1).sum()),
        int((apart[:, s.TIME : s.VISITED] != 0).any(axis=1).sum() + (drive.rewards[0] != rewards)[live].sum()),
        int((drive.over[0] != over).sum()),
    )


def measure_parity(rollouts: int, *, horizon: int = 15, seed: int = 0) -> dict[str, Any]:
    """Compare `rollouts` rollouts on as many tracks as that takes, by phase; 24 from each track."""
    simulator = CarRacingSimulator(threads=1)
    env = UndrawnCarRacing()
    rng = np.random.default_rng(seed)
    counts: dict[str, Counter[str]] = {phase: Counter() for phase in PHASES}
    worst = dict.fromkeys(PHASES, 0.0)
    for i in range(rollouts):
        if i % 24 == 0:
            env.reset(seed=seed + i // 24)
            track = make_track(seed + i // 24)
        _approach(env, track, rng, PHASES[i % 4])
        phase = phase_of(read_car(env))
        V = np.zeros((horizon, 2)) if phase == "rest" and i % 8 == 3 else rng.uniform(-1, 1, (horizon, 2))
        if i % 3 == 0:
            V = np.repeat(V[:1], horizon, axis=0)
        error, tiles, rewards, ends = compare(simulator, env, V.astype(np.float32))
        worst[phase] = max(worst[phase], error)
        exact = error == 0 and tiles + rewards + ends == 0
        counts[phase].update(rollouts=1, equal_to_the_bit=exact, tiles_differ=tiles > 0, rewards_differ=rewards > 0)
    return {phase: dict(counts[phase]) | {"worst_error": worst[phase]} for phase in PHASES if counts[phase]}


def _approach(env: UndrawnCarRacing, track: Track, rng: np.random.Generator, phase: str) -> None:
    """Drive for a while so that the wanted phase is likely."""
    speed, swerve = rng.uniform(20, 70), rng.uniform(-1, 1)
    for _ in range(int(rng.integers(10, 60))):
        steer, pedal = pilot(read_car(env), track, speed)
        _act(env, steer + 0.2 * rng.standard_normal(), pedal)
    if phase == "grass":
        for _ in range(int(rng.integers(15, 40))):
            _act(env, 0.3 * swerve, 0.2)
    elif phase == "limit":
        for _ in range(int(rng.integers(8, 15))):
            _act(env, np.sign(swerve), 0.1)
    elif phase == "rest":
        for _ in range(int(rng.integers(60, 140))):
            _act(env, 0.0, -0.8)


def _act(env: UndrawnCarRacing, steer: float, pedal: float) -> None:
    env.step(CarRacingSimulator.action(np.array([steer, pedal])))


def main() -> None:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=2400)
    parser.add_argument("--horizon", type=int, default=15, help="K")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "command": shlex.join(["python", "-m", "rhirl.simulators.car.parity", *sys.argv[1:]]),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("numpy", "numba", "gymnasium", "Box2D")},
        "horizon": arguments.horizon,
        "phases": measure_parity(arguments.rollouts, horizon=arguments.horizon),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
