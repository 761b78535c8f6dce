"""Is this installation well? Versions, threads, and a self-check that takes a few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rhirl.demos import bundled_demos, load_demos, to_action
from rhirl.demos.bundled import DATA
from rhirl.demos.recordings import SUFFIX, read_recordings
from rhirl.learning import RHIRL, Config
from rhirl.machine import surroundings
from rhirl.planning import Planner, weights
from rhirl.tasks import TASKS, Task, get_task

TOLERANCE = 0.01
"""Of the largest number observed: other builds of an engine may round otherwise."""
CHANCE = 5.0
"""How much further than two simulations from each other chance may take the environment."""


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    well: bool
    detail: str


def examine() -> Iterator[Finding]:
    """Look at one thing after the other."""
    here = surroundings()
    yield Finding("versions", True, ", ".join(f"{name} {version}" for name, version in here["versions"].items()))
    yield Finding("machine", True, f"{here['machine']}, Python {here['python']}, {here['cores']} cores")
    yield Finding("JAX runs on", True, ", ".join(str(device) for device in jax.devices()))
    yield _check("weights", _weights)
    for name, task in TASKS.items():
        yield _check(f"{name} simulator beside Gymnasium", partial(parity, task))
    yield _check("bundled demonstrations", _demonstrations)
    yield _check("learning", _learning)


def _check(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, look())
    except Exception as error:
        return Finding(what, False, f"{type(error).__name__}: {error}")


def _weights() -> str:
    w = np.asarray(weights(jnp.array([0.0, 1.0, jnp.inf]), 1.0))
    expected = np.array([1.0, np.exp(-1.0), 0.0]) / (1.0 + np.exp(-1.0))
    np.testing.assert_allclose(w, expected, rtol=1e-6)
    return "exp(−S/λ) normalised as it should be"


def parity(task: Task, steps: int = 20) -> str:
    """Step the simulator and the environment side by side, and compare them as the simulator observes them.

    Where chance has a part in the steps, a second simulation with other draws says how far chance alone takes them.
    """
    env, simulator = task.make_env(), task.simulator()
    env.reset(seed=0)
    one = other = simulator.snapshot(env)
    apart, by_chance, largest = 0.0, 0.0, 1.0
    for k, v in enumerate(np.random.default_rng(0).uniform(-1, 1, (steps, task.control_dim)).astype(np.float32)):
        one, other = simulator.step(one, v, seed=k), simulator.step(other, v, seed=steps + k)
        for _ in range(task.hold):
            env.step(to_action(env, v))
        real, x, y = (simulator.observe(s).astype(np.float64) for s in (simulator.snapshot(env), one, other))
        apart, by_chance = max(apart, np.abs(x - real).max()), max(by_chance, np.abs(x - y).max())
        largest = max(largest, np.abs(real).max())
    env.close()
    found = f"largest difference over {steps} steps: {apart:.1e}"
    if by_chance > 0:
        found += f", between two simulations {by_chance:.1e}"
    if apart > TOLERANCE * largest + CHANCE * by_chance:
        raise ArithmeticError(found)
    return found


def _demonstrations() -> str:
    for name, noise in bundled_demos():
        load_demos(name, noise)
    recordings = sorted(DATA.glob(f"*{SUFFIX}"))
    for path in recordings:
        read_recordings(path)
    return f"{len(bundled_demos())} files and {len(recordings)} recordings read and valid"


def _learning() -> str:
    task = get_task("pendulum")
    config = Config(planner=Planner(K=5, M=8), hidden=(8,), iterations=5)
    learner: Any = RHIRL(task.simulator(), load_demos("pendulum"), config).learn()
    finite = all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(learner.state.network))
    if not finite:
        raise ArithmeticError("θ is not finite after five updates")
    return "five updates of a small cost, all finite"
