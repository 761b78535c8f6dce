"""Follow controls and then a policy through a simulator, and see what becomes of the task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.protocol import FollowingSimulator, Policy, Simulator, State, expected_step, where_lost


def follow(
    simulator: Simulator,
    state: State,
    controls: NDArray[Any],
    policy: Policy,
    steps: int,
    *,
    lost_too: bool = False,
) -> NDArray[Any]:
    """Execute controls (K, m), then a policy's; return what is seen (≤ steps + 1, *n) until the task is lost.

    With `lost_too` a lost task is followed as well, as far as it can be simulated.
    """
    if isinstance(simulator, FollowingSimulator):
        return simulator.follow(state, controls, policy, steps, lost_too=lost_too)
    return step_by_step(simulator, state, controls, policy, steps, lost_too=lost_too)


def step_by_step(
    simulator: Simulator,
    state: State,
    controls: NDArray[Any],
    policy: Policy,
    steps: int,
    *,
    lost_too: bool = False,
) -> NDArray[Any]:
    """Do so with any simulator; one that diverges has lost its task."""
    step, lost, seen = expected_step(simulator), where_lost(simulator), [simulator.observe(state)]
    for k in range(steps):
        try:
            state = step(state, controls[k] if k < len(controls) else policy(seen[-1]))
        except RuntimeError:
            break
        if not lost_too and lost(state):
            break
        seen.append(simulator.observe(state))
    return np.stack(seen)
