"""Lead many systems by one policy under control noise, and see for how long the task lasts in each.

    u_t = π(x_t),  v_t = clip(u_t + ε_t, ±1),  ε_t ~ N(0, σ²),  x_{t+1} = f(x_t, v_t)

until the task is lost, or for L steps. Shapes: N systems, observations (n,), controls (m,).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rhirl.simulators.protocol import Policy, Simulator, State, where_lost


class Led(NamedTuple):
    """What became of N systems."""

    observations: NDArray[Any]
    """(N, L + 1, n); past the end zero."""
    controls: NDArray[np.float32]
    """(N, L, m) π(x) + ε, before it is clipped; past the end zero."""
    lasted: NDArray[np.int64]
    """(N,) steps after which the task still went on: L where it was not lost."""


@runtime_checkable
class LeadingSimulator(Simulator, Protocol):
    """A simulator that leads many systems at once, faster than one after the other."""

    def lead(self, starts: Sequence[State], policy: Policy, noise: ArrayLike, steps: int, seed: int) -> Led:
        """Lead systems from their starts; the policy is asked for all of them at once, (N, n) → (N, m)."""
        ...


def lead(
    simulator: Simulator, starts: Sequence[State], policy: Policy, noise: ArrayLike, steps: int, seed: int = 0
) -> Led:
    """Lead systems by a policy that takes batches, under noise of deviation σ, a number or (m,)."""
    if isinstance(simulator, LeadingSimulator):
        return simulator.lead(starts, policy, noise, steps, seed)
    return in_lockstep(simulator, starts, policy, noise, steps, seed)


def in_lockstep(
    simulator: Simulator, starts: Sequence[State], policy: Policy, noise: ArrayLike, steps: int, seed: int = 0
) -> Led:
    """Do so with any simulator; one that diverges has lost its task."""
    N, m = len(starts), simulator.control_dim
    systems, led = list(starts), blank(simulator, N, steps)
    led.observations[:, 0] = [simulator.observe(system) for system in systems]
    epsilon = disturbances(seed, steps, N, m, noise)
    alive, lost = np.arange(N), where_lost(simulator)
    for k in range(steps):
        if len(alive) == 0:
            break
        V = led.controls[alive, k] = policy(led.observations[alive, k]) + epsilon[k, alive]
        going = []
        for i, v in zip(alive, V, strict=True):
            try:
                systems[i] = simulator.step(systems[i], np.clip(v, -1, 1), seed=k)
            except RuntimeError:
                continue
            if not lost(systems[i]):
                led.observations[i, k + 1] = simulator.observe(systems[i])
                going.append(i)
        alive = np.array(going, np.intp)
        led.lasted[alive] = k + 1
    return led


def blank(simulator: Simulator, N: int, steps: int) -> Led:
    """Lay out what is to be filled in."""
    observations = np.zeros((N, steps + 1, *simulator.observation_shape), np.float32)
    return Led(observations, np.zeros((N, steps, simulator.control_dim), np.float32), np.zeros(N, np.int64))


def disturbances(seed: int, steps: int, N: int, m: int, noise: ArrayLike) -> NDArray[np.float32]:
    """Draw ε (L, N, m)."""
    return np.random.default_rng(seed).standard_normal((steps, N, m), np.float32) * np.asarray(noise, np.float32)
