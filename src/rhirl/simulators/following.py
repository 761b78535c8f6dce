"""Follow controls and then a policy through a simulator, and see how long the task lasts."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rhirl.simulators.protocol import FollowingSimulator, Policy, Simulator, State, expected_step


def lasts(simulator: Simulator, state: State, controls: NDArray[Any], policy: Policy, steps: int) -> int:
    """Execute controls (K, m), then a policy's; return for how many of the steps the task lasts."""
    if isinstance(simulator, FollowingSimulator):
        return simulator.lasts(state, controls, policy, steps)
    return step_by_step(simulator, state, controls, policy, steps)


def step_by_step(simulator: Simulator, state: State, controls: NDArray[Any], policy: Policy, steps: int) -> int:
    """Do so with any simulator; one that diverges does not last."""
    step = expected_step(simulator)
    for k in range(steps):
        try:
            state = step(state, controls[k] if k < len(controls) else policy(simulator.observe(state)))
        except RuntimeError:
            return k
        if simulator.terminated(state):
            return k
    return steps
