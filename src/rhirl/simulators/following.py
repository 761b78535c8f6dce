"""Follow controls and then a policy through a simulator, and see what becomes of the task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.protocol import FollowingSimulator, Policy, Simulator, State, expected_step


def follow(simulator: Simulator, state: State, controls: NDArray[Any], policy: Policy, steps: int) -> NDArray[Any]:
    """Execute controls (K, m), then a policy's; return what is seen (≤ steps + 1, *n) until the task is lost."""
    if isinstance(simulator, FollowingSimulator):
        return simulator.follow(state, controls, policy, steps)
    return step_by_step(simulator, state, controls, policy, steps)


def step_by_step(
    simulator: Simulator, state: State, controls: NDArray[Any], policy: Policy, steps: int
) -> NDArray[Any]:
    """Do so with any simulator; one that diverges has lost its task."""
    step, seen = expected_step(simulator), [simulator.observe(state)]
    for k in range(steps):
        try:
            state = step(state, controls[k] if k < len(controls) else policy(seen[-1]))
        except RuntimeError:
            break
        if simulator.terminated(state):
            break
        seen.append(simulator.observe(state))
    return np.stack(seen)
