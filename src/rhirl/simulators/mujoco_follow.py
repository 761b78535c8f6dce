"""Lead one MuJoCo simulation by a policy, and see what becomes of the task.

A policy answers to what it sees, so its steps cannot be handed to the engine at once as sampled controls are. What
is left of each is one call of `mj_step`, one observation and one comparison with the task's limits. The physics is
the environment's own: over hundreds of steps a cheaper model takes falls for none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.mujoco_ending import Limits
from rhirl.simulators.mujoco_engine import POST_CONSTRAINT, Physics, quiet
from rhirl.simulators.mujoco_observation import ObservationRule
from rhirl.simulators.mujoco_state import INTEGRATION
from rhirl.simulators.protocol import Policy


class Follower:
    """One simulation, to be led.

    Args:
        physics: The model, and how many of its steps make one of the environment.
        rule: How an observation is read.
        limits: Within which entries of an observation the task goes on.
    """

    def __init__(self, physics: Physics, rule: ObservationRule, limits: Limits) -> None:
        self._physics, self._rule, self._limits = physics, rule, limits
        self._data = mujoco.MjData(physics.model)
        self._views = {name: getattr(self._data, name).reshape(-1) for name in rule.fields}
        self._forces = bool(POST_CONSTRAINT & set(rule.fields))

    def follow(
        self,
        start: NDArray[np.float64],
        seen: NDArray[Any],
        controls: NDArray[Any],
        policy: Policy,
        steps: int,
        action: Callable[[NDArray[Any]], NDArray[Any]],
        lost_too: bool,
    ) -> NDArray[Any]:
        """Follow controls (K, m) and then the policy from a state; return what is seen (≤ steps + 1, n).

        `seen` (n,) is the observation there, whose type the policy is shown; `action` scales controls; `lost_too`
        goes on where the task is lost.
        """
        model, data, warnings = self._physics.model, self._data, self._data.warning.number
        mujoco.mj_setState(model, data, start, INTEGRATION)
        warnings[:] = 0
        x = np.empty((steps + 1, *seen.shape), seen.dtype)
        x[0] = seen
        with quiet():
            for k in range(steps):
                data.ctrl[:] = action(controls[k] if k < len(controls) else policy(x[k]))
                mujoco.mj_step(model, data, self._physics.frame_skip)
                if self._forces:
                    mujoco.mj_rnePostConstraint(model, data)
                self._rule.assemble(self._views, x[k + 1])
                if warnings.any() or (not lost_too and self._limits.ended(x[k + 1])):
                    return x[: k + 1]
        return x
