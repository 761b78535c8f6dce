"""Which control led from one demonstrated state to the next? Ask the simulator.

Demonstrations hold only states, but where the simulator can be put into them it tells what was done there:

    v_t = argmin_v ‖f(x_t, v) − x_{t+1}‖²,   v in [-1, 1]ᵐ

a bounded least-squares problem in m unknowns, solved by Levenberg–Marquardt with finite differences. Contacts and
joint stops give it many local minima, so it is begun again elsewhere until the transition is met, or one minimum is
found twice. What an observation does not tell (hidden variables, clipped velocities) is taken from where the last
answer led; what is still not met leaves a residual, so every answer comes with its own. A control that does nothing
(an engine below its threshold) is set to the middle of where it does nothing, so that the mean of many such answers
does nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from rhirl.demos import Demonstrations
from rhirl.simulators import InvertibleSimulator, Simulator, State, expected_step

STARTS, ITERATIONS, DIFFERENCE, DAMPING, SOLVED = 8, 8, 1e-3, 1e-4, 1e-9
"""Beginnings and steps from each at most, finite difference, first damping, the residual that ends the search."""
TRIALS = 4
"""How often a step may be damped more before the slopes are measured anew."""
AGAIN = 1e-5
"""Relative difference of two residuals that are one minimum."""
FAR = 1e3
LOOKS = 32
"""Controls of the coarse look."""
LADDER = np.linspace(-1, 1, 41)
"""Where a control is tried to see whether it does anything."""
NOTHING = 1e-9
"""Change of the next observation, squared and in deviations, that is none."""
SCALE_FLOOR = 1e-2


class Explained(NamedTuple):
    """Controls that explain demonstrated transitions; of one episode, without the leading N."""

    controls: NDArray[np.float32]
    """(N, T, m)"""
    residuals: NDArray[np.float64]
    """(N, T) ‖f(x_t, v_t) − x_{t+1}‖², in deviations of the demonstrations; NaN past the end."""

    def until(self, T: int) -> Explained:
        """Return what explains the first T steps."""
        return Explained(self.controls[:, :T], self.residuals[:, :T])

    @classmethod
    def of_episodes(cls, episodes: Iterable[Explained]) -> Explained:
        """Put episodes together."""
        return cls(*(np.stack(parts) for parts in zip(*episodes, strict=True)))


def explain(
    simulator: InvertibleSimulator, demos: Demonstrations, progress: Callable[[int, int], None] | None = None
) -> Explained:
    """Find the control of every demonstrated transition; `progress` hears (episodes done, episodes)."""
    found, scale = [], scale_of(demos)
    for i in range(len(demos)):
        found.append(explain_episode(simulator, demos, scale, i))
        if progress is not None:
            progress(i + 1, len(demos))
    return Explained.of_episodes(found)


def explain_episode(
    simulator: InvertibleSimulator, demos: Demonstrations, scale: NDArray[np.float64], i: int
) -> Explained:
    """Find the control of every transition of the i-th episode; only the scale (n,) depends on the others."""
    step = expected_step(simulator)
    controls = np.zeros((demos.horizon, simulator.control_dim), np.float32)
    residuals = np.full(demos.horizon, np.nan)
    state: State | None = None
    v = np.zeros(simulator.control_dim)
    for t in range(demos.lengths[i]):
        x, x_next = demos.observations[i, t], demos.observations[i, t + 1]
        state = simulator.state_from_observation(x, state)
        v, residuals[t] = explain_step(simulator, state, x_next, scale, guess=v)
        controls[t] = idle_in_the_middle(simulator, state, v, scale)
        try:
            state = step(state, controls[t])
        except RuntimeError:  # diverged: it tells nothing about what comes next
            state = None
    return Explained(controls, residuals)


def scale_of(demos: Demonstrations) -> NDArray[np.float64]:
    """Return the deviation of each coordinate over the demonstrations (n,), in which differences are measured."""
    return np.maximum(demos.states().astype(np.float64).std(axis=0), SCALE_FLOOR)


def explain_step(
    simulator: Simulator,
    start: State,
    x_next: NDArray[Any],
    scale: NDArray[np.float64],
    guess: NDArray[Any] | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Find v (m,) that leads from a state to x_next, and its residual.

    Differences are measured in `scale` (n,). A guess, such as the control before, is one of the beginnings.
    """
    target, step_from = np.asarray(x_next, np.float64) / scale, expected_step(simulator)

    def miss(v: NDArray[np.float64]) -> NDArray[np.float64]:
        try:
            reached = simulator.observe(step_from(start, v))
        except RuntimeError:  # diverged: nowhere near
            return np.full_like(target, FAR)
        return target - np.asarray(reached, np.float64) / scale

    beginnings = [coarse_look(simulator, start, target, scale)]
    beginnings += [] if guess is None else [np.asarray(guess, np.float64)]
    beginnings += [*np.random.default_rng(1).uniform(-1, 1, (STARTS - len(beginnings), simulator.control_dim))]
    best, residual = beginnings[0], np.inf
    for beginning in beginnings:
        v, found = descend(miss, beginning)
        again = abs(found - residual) <= AGAIN * found
        best, residual = (v, found) if found < residual else (best, residual)
        if residual < SOLVED or again:
            break
    return best, residual


def descend(
    miss: Callable[[NDArray[np.float64]], NDArray[np.float64]], v: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Go from v (m,) to a minimum of ‖miss(v)‖² in the box [-1, 1]ᵐ; return it and its value."""
    r, h, damping = miss(v), DIFFERENCE, DAMPING
    for _ in range(ITERATIONS):
        if r @ r < SOLVED:
            break
        inward = np.where(v > 0, -h, h)
        slopes = np.stack([(r - miss(v + d)) / d.sum() for d in np.diag(inward)], axis=1)
        steepest = np.linalg.norm(slopes, axis=0).max()
        for _ in range(TRIALS):
            system = np.vstack([slopes, np.sqrt(damping) * steepest * np.eye(len(v))])
            step = lsq_linear(system, np.pad(r, (0, len(v))), (-1 - v - 1e-9, 1 - v + 1e-9), method="bvls").x
            u = np.clip(v + step, -1, 1)
            q = miss(u)
            if q @ q < (1 - 1e-4) * (r @ r):
                v, r, damping = u, q, damping / 10
                break
            damping *= 10
        else:
            h, damping = h / 4, DAMPING  # contacts come and go within the difference: look closer
    return v, float(r @ r)


def coarse_look(
    simulator: Simulator, start: State, target: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the best of zero and a few random controls (m,), by the simulator's rollouts."""
    V = np.random.default_rng(0).uniform(-1, 1, (LOOKS + 1, simulator.control_dim))
    V[0] = 0
    reached = reach(simulator, start, V, scale)
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
    reached = reach(simulator, start, V, scale)
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


def reach(
    simulator: Simulator, start: State, V: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return where each of the controls V (M, m) leads in one step of the rollouts: (M, n) in `scale`."""
    return np.asarray(simulator.rollout(start, V[:, None].astype(np.float32)).observations[:, 1] / scale)
