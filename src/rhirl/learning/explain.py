"""Which control led from one demonstrated state to the next? Ask the simulator.

Demonstrations hold only states, but where the simulator can be put into them it tells what was done there:

    v_t = argmin_v ‖f(x_t, v) − x_{t+1}‖²,   v in [-1, 1]ᵐ

a bounded least-squares problem in m unknowns. A coarse look finds where to begin, Gauss–Newton with finite
differences goes on from there. What an observation does not tell (hidden variables, clipped velocities) is taken
from where the last answer led; what is still not met leaves a residual, so every answer comes with its own. A
control that does nothing (an engine below its threshold) is set to the middle of where it does nothing, so that the
mean of many such answers does nothing either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from rhirl.demos import Demonstrations
from rhirl.simulators import InvertibleSimulator, Simulator, State, expected_step

ITERATIONS, DIFFERENCE, SOLVED = 8, 0.05, 1e-9
"""Gauss–Newton steps at most, the first finite difference, and the residual that ends the search."""
FAR = 1e3
LOOKS = 32
"""Controls of the coarse look."""
LADDER = np.linspace(-1, 1, 41)
"""Where a control is tried to see whether it does anything."""
NOTHING = 1e-9
"""Change of the next observation, squared and in deviations, that is none."""
SCALE_FLOOR = 1e-2


class Explained(NamedTuple):
    """Controls that explain demonstrated transitions."""

    controls: NDArray[np.float32]
    """(N, T, m)"""
    residuals: NDArray[np.float64]
    """(N, T) ‖f(x_t, v_t) − x_{t+1}‖², in deviations of the demonstrations; NaN past the end."""


def explain(
    simulator: InvertibleSimulator, demos: Demonstrations, progress: Callable[[int, int], None] | None = None
) -> Explained:
    """Find the control of every demonstrated transition; `progress` hears (episodes done, episodes)."""
    N, T = len(demos), demos.horizon
    scale, step = scale_of(demos), expected_step(simulator)
    controls = np.zeros((N, T, simulator.control_dim), np.float32)
    residuals = np.full((N, T), np.nan)
    for i, length in enumerate(demos.lengths):
        state: State | None = None
        for t in range(length):
            x, x_next = demos.observations[i, t], demos.observations[i, t + 1]
            state = simulator.state_from_observation(x, state)
            v, residuals[i, t] = explain_step(simulator, state, x_next, scale)
            controls[i, t] = idle_in_the_middle(simulator, state, v, scale)
            try:
                state = step(state, controls[i, t])
            except RuntimeError:  # diverged: it tells nothing about what comes next
                state = None
        if progress is not None:
            progress(i + 1, N)
    return Explained(controls, residuals)


def scale_of(demos: Demonstrations) -> NDArray[np.float64]:
    """Return the deviation of each coordinate over the demonstrations (n,), in which differences are measured."""
    return np.maximum(demos.states().astype(np.float64).std(axis=0), SCALE_FLOOR)


def explain_step(
    simulator: Simulator, start: State, x_next: NDArray[Any], scale: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Find v (m,) that leads from a state to x_next, and its residual; differences are measured in `scale` (n,)."""
    target, step_from = np.asarray(x_next, np.float64) / scale, expected_step(simulator)

    def miss(v: NDArray[np.float64]) -> NDArray[np.float64]:
        try:
            reached = simulator.observe(step_from(start, v))
        except RuntimeError:  # diverged: nowhere near
            return np.full_like(target, FAR)
        return target - np.asarray(reached, np.float64) / scale

    v, h = coarse_look(simulator, start, target, scale), DIFFERENCE
    r = miss(v)
    for _ in range(ITERATIONS):
        if r @ r < SOLVED:
            break
        inward = np.where(v > 0, -h, h)
        slopes = np.stack([(r - miss(v + d)) / d.sum() for d in np.diag(inward)], axis=1)
        step = lsq_linear(slopes, r, (-1 - v - 1e-9, 1 - v + 1e-9), method="bvls").x
        trials = [np.clip(v + part * step, -1, 1) for part in (1.0, 0.5, 0.2)]
        better = next(((u, q) for u in trials if (q := miss(u)) @ q < 0.999 * (r @ r)), None)
        if better is None:
            h /= 4  # contacts come and go within the difference: look closer
        else:
            v, r = better
    return v, float(r @ r)


def coarse_look(
    simulator: Simulator, start: State, target: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the best of zero and a few random controls (m,), by the simulator's rollouts."""
    V = np.random.default_rng(0).uniform(-1, 1, (LOOKS + 1, simulator.control_dim))
    V[0] = 0
    reached = simulator.rollout(start, V[:, None].astype(np.float32)).observations[:, 1] / scale
    return np.asarray(V[((reached - target) ** 2).sum(axis=-1).argmin()])


def idle_in_the_middle(
    simulator: Simulator, start: State, v: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Set each control of v (m,) that does nothing to the middle of the interval in which it does nothing."""
    m, L = len(v), len(LADDER)
    V = np.tile(v, (1 + m * L, 1))
    ladders = V[1:].reshape(m, L, m)
    for j in range(m):
        ladders[j, :, j] = LADDER
    reached = simulator.rollout(start, V[:, None].astype(np.float32)).observations[:, 1] / scale
    same = (((reached[1:] - reached[0]) ** 2).sum(axis=-1) < NOTHING).reshape(m, L)
    idle = v.copy()
    for j in range(m):
        here = int(np.abs(LADDER - v[j]).argmin())
        if same[j, here]:
            different = np.flatnonzero(~same[j])
            first = max(different[different < here], default=-1) + 1
            last = min(different[different > here], default=L) - 1
            idle[j] = (LADDER[first] + LADDER[last]) / 2 if first < last else v[j]
    return idle
