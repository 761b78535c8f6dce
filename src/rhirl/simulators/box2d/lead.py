"""Lead many landers by one policy, each over its own ground: it is asked for all at once, then all take a step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import LANES
from rhirl.simulators.box2d.simulate import simulate
from rhirl.simulators.box2d.state import World
from rhirl.simulators.leading import Led
from rhirl.simulators.protocol import Policy
from rhirl.simulators.threads import split

EDGE_OF_VIEW = 1.0
"""Observed |x| from which the lander has left the view, which ends the task."""
NO_FORCE = np.zeros(2, np.float32)


def lead_worlds(
    worlds: World,
    led: Led,
    policy: Policy,
    epsilon: NDArray[np.float32],
    dispersion: NDArray[np.float64],
    gravity: np.float32,
    threads: int,
) -> Led:
    """Lead worlds (N, …) under noise ε (L, N, 2) and dispersion (L, N, 2), and fill in what became of them.

    Their first observations are filled in already. Those that crashed, or left the view, are left where they are.
    """
    alive = np.arange(len(led.lasted))
    with ThreadPoolExecutor(threads) as pool:
        for k, draws in enumerate(epsilon):
            if len(alive) == 0:
                break
            V = led.controls[alive, k] = policy(led.observations[alive, k]) + draws[alive]
            step = partial(_step, worlds, np.clip(V, -1.0, 1.0).astype(np.float32), dispersion[k, alive], gravity)
            after = list(pool.map(step, split(len(alive), threads, LANES)))
            worlds = World._make(np.concatenate(arrays) for arrays in zip(*(one for one, _ in after), strict=True))
            seen = np.concatenate([observations for _, observations in after])
            going = ~worlds.touched[:, 0] & (np.abs(seen[:, 0]) < EDGE_OF_VIEW)
            worlds, alive = World._make(array[going] for array in worlds), alive[going]
            led.observations[alive, k + 1] = seen[going]
            led.lasted[alive] = k + 1
    return led


def _step(
    worlds: World,
    controls: NDArray[np.float32],
    dispersion: NDArray[np.float64],
    gravity: np.float32,
    lanes: slice,
) -> tuple[World, NDArray[np.float32]]:
    """Advance some of the worlds by one step; return copies of them, and what is seen (n, 8)."""
    some = World._make(array[lanes].copy() for array in worlds)
    seen = np.empty((len(some.terrain), 2, 8), np.float32)
    simulate(some, controls[lanes, None], dispersion[lanes, None], gravity, NO_FORCE, seen)
    return some, seen[:, 1]
