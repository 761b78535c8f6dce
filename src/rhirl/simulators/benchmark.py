"""How fast a simulator is, against its own engine and against Gymnasium's loop, measured in one run.

A machine is never quiet and never the same, so only ratios of times taken side by side mean anything: every
repetition runs all contestants once, one after the other, and the medians over repetitions are compared.
One step is one environment step; a rollout is M · K of them.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.protocol import EnvironmentSimulator, Simulator, State


@runtime_checkable
class Comparable(EnvironmentSimulator, Protocol):
    """A simulator that can be timed against its bare engine and its environment."""

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """Make the environment that is simulated."""
        ...

    def action(self, controls: NDArray[Any]) -> NDArray[Any]:
        """Scale controls in [-1, 1] to the actions of that environment."""
        ...

    def bare_rollout(self, state: State, controls: NDArray[Any]) -> Callable[[], object]:
        """Prepare the same rollout with the engine alone; the returned function does the work."""
        ...


def measure(
    make: Callable[[], Simulator],
    *,
    samples: int = 100,
    horizon: int = 20,
    builds: int = 3,
    repetitions: int = 5,
    seed: int = 0,
) -> dict[str, Any]:
    """Time rollouts of M `samples` and K `horizon` with random controls, 15 steps after a reset.

    Returns `steps_per_s` of the simulator and, where it is `Comparable`, `bare_steps_per_s` of the engine alone,
    `gym_steps_per_s` of the environment's own loop of restoring and stepping, and the ratios of the first to the
    others. `cpu_ratio_to_bare` compares processor seconds instead of time, which other programs disturb less.
    Where the memory of a simulation happens to lie changes its speed by a few percent: everything is built anew
    `builds` times, and run `repetitions` times each.
    """
    times = _Times()
    for build in range(builds):
        simulator = make()
        rng = np.random.default_rng(seed + build)
        state = simulator.reset(seed + build)
        for _ in range(15):
            state = simulator.step(state, rng.uniform(-1, 1, simulator.control_dim))
        V = rng.uniform(-1, 1, (samples, horizon, simulator.control_dim)).astype(np.float32)
        few = V[: max(1, samples // 10)]

        runs: dict[str, Callable[[], object]] = {"": partial(simulator.rollout, state, V)}
        if isinstance(simulator, Comparable):
            runs["bare_"] = simulator.bare_rollout(state, V)
            runs["gym_"] = _gymnasium_loop(simulator, state, few)
        times.interleave(runs, repetitions)

    result: dict[str, Any] = {"samples": samples, "horizon": horizon, "builds": builds, "repetitions": repetitions}
    for name in runs:
        steps = len(few if name == "gym_" else V) * horizon
        result[f"{name}steps_per_s"] = steps / times.median(name)
    if len(runs) > 1:
        result["ratio_to_bare"] = result["steps_per_s"] / result["bare_steps_per_s"]
        result["ratio_to_gym"] = result["steps_per_s"] / result["gym_steps_per_s"]
        result["cpu_ratio_to_bare"] = times.median_cpu("bare_") / times.median_cpu("")
    return result


def measure_threads(
    make: Callable[[int], Simulator],
    *,
    threads: int = 2,
    samples: int = 100,
    horizon: int = 20,
    builds: int = 3,
    repetitions: int = 5,
) -> dict[str, Any]:
    """Time the simulator that `make(threads)` makes against the one of `make(1)`."""
    times = _Times()
    for _ in range(builds):
        many, one = make(threads), make(1)
        state = one.reset(0)
        V = np.random.default_rng(0).uniform(-1, 1, (samples, horizon, one.control_dim)).astype(np.float32)
        times.interleave(
            {"many": partial(many.rollout, state, V), "one": partial(one.rollout, state, V)}, repetitions
        )
    return {"threads": threads, "speedup": times.median("one") / times.median("many")}


def measure_planning_model(
    exact: Simulator, planning: Simulator, *, samples: int = 20, horizon: int = 20, starts: int = 20
) -> dict[str, float]:
    """Compare the rollouts of a planning model with the exact ones, from random states under random controls.

    Errors are medians over all rollouts: of max_i |x̂_i - x_i| after one step and after K, and of the root mean
    square over i of (x̂_i - x_i) / σ_i after K, where σ_i is the standard deviation of entry i over the exact
    rollouts: at 1 the prediction is as far off as a typical other state. `speedup` compares processor seconds.
    """
    rng = np.random.default_rng(0)
    V = rng.uniform(-1, 1, (samples, horizon, exact.control_dim)).astype(np.float32)
    cpu: dict[Simulator, float] = {exact: 0.0, planning: 0.0}
    paths: dict[Simulator, list[NDArray[Any]]] = {exact: [], planning: []}
    for seed in range(starts):
        state = exact.reset(seed)
        for _ in range(int(rng.integers(5, 60))):
            state = exact.step(state, rng.uniform(-1, 1, exact.control_dim))
        for simulator in (exact, planning):
            began = time.process_time()
            paths[simulator].append(simulator.rollout(state, V).observations)
            cpu[simulator] += time.process_time() - began
    true, error = np.concatenate(paths[exact]), np.concatenate(paths[planning]) - np.concatenate(paths[exact])
    spread = true.std(axis=(0, 1))
    relative = error[:, -1, spread > 0] / spread[spread > 0]
    return {
        "error_after_1": float(np.median(np.abs(error[:, 1]).max(axis=1))),
        "error_after_K": float(np.median(np.abs(error[:, -1]).max(axis=1))),
        "relative_error_after_K": float(np.median(np.sqrt((relative**2).mean(axis=1)))),
        "speedup": cpu[exact] / cpu[planning],
    }


def measure_memory(simulator: Simulator, *, control_steps: int = 10_000, samples: int = 8) -> dict[str, Any]:
    """Plan and act for many control steps, and return how much resident memory that adds, in MiB."""
    rng = np.random.default_rng(0)
    state = simulator.reset(0)

    def act() -> None:
        nonlocal state
        # Changing shapes would show a buffer that is kept for each of them.
        V = rng.uniform(-1, 1, (samples, int(rng.integers(1, 4)), simulator.control_dim))
        simulator.rollout(state, V)
        state = simulator.step(state, V[0, 0])
        if simulator.terminated(state):
            state = simulator.reset(int(rng.integers(2**31)))

    for _ in range(control_steps // 10):
        act()
    before = _resident_mib()
    for _ in range(control_steps):
        act()
    return {"control_steps": control_steps, "rss_mib": before, "rss_growth_mib": _resident_mib() - before}


def _gymnasium_loop(simulator: Comparable, state: State, V: NDArray[Any]) -> Callable[[], object]:
    env = simulator.make_env().unwrapped
    env.reset(seed=0)
    plans = simulator.action(V)

    def run() -> None:
        for actions in plans:
            simulator.restore(env, state)
            for action in actions:
                env.step(action)

    return run


class _Times:
    """Wall and processor seconds of several contestants, taken in turns."""

    def __init__(self) -> None:
        self._wall: defaultdict[str, list[float]] = defaultdict(list)
        self._cpu: defaultdict[str, list[float]] = defaultdict(list)

    def interleave(self, runs: Mapping[str, Callable[[], object]], repetitions: int) -> None:
        """Run all in turn, forwards and backwards, `repetitions` times after one that does not count."""
        for repetition in range(repetitions + 1):
            for name in list(runs)[:: -1 if repetition % 2 else 1]:
                wall, cpu = time.perf_counter(), time.process_time()
                runs[name]()
                if repetition > 0:
                    self._wall[name].append(time.perf_counter() - wall)
                    self._cpu[name].append(time.process_time() - cpu)

    def median(self, name: str) -> float:
        return statistics.median(self._wall[name])

    def median_cpu(self, name: str) -> float:
        return statistics.median(self._cpu[name])


def _resident_mib() -> float:
    """Return the resident memory of this process, or its peak where the system tells only that."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
