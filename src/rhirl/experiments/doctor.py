"""Is this installation well? Versions, threads, and a self-check that takes a few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rhirl.demos import bundled_demos, load_demos, to_action
from rhirl.experiments.run import surroundings
from rhirl.learning import RHIRL, Config
from rhirl.planning import Planner, weights
from rhirl.tasks import TASKS, get_task


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
    for name in TASKS:
        yield _check(f"{name} simulator beside Gymnasium", partial(_parity, name))
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


def _parity(name: str, steps: int = 20) -> str:
    task = get_task(name)
    env, simulator = task.make_env(), task.simulator()
    env.reset(seed=0)
    V = np.random.default_rng(0).uniform(-1, 1, (1, steps, task.control_dim)).astype(np.float32)
    rollout = simulator.rollout(simulator.snapshot(env), V).observations[0, 1:]
    real = np.stack([np.asarray(env.step(to_action(env, v))[0], np.float32) for v in V[0]])
    env.close()
    return f"largest difference over {steps} steps: {np.abs(rollout - real[:, : rollout.shape[1]]).max():.1e}"


def _demonstrations() -> str:
    for name, noise in bundled_demos():
        load_demos(name, noise)
    return f"{len(bundled_demos())} files read and valid"


def _learning() -> str:
    task = get_task("pendulum")
    config = Config(planner=Planner(K=5, M=8), hidden=(8,), iterations=5)
    learner: Any = RHIRL(task.simulator(), load_demos("pendulum"), config).learn()
    finite = all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(learner.state.network))
    if not finite:
        raise ArithmeticError("θ is not finite after five updates")
    return "five updates of a small cost, all finite"
