"""The state of a MuJoCo environment as one flat array: what continues it exactly, bit for bit.

    state = [ integration state | carried fields | tag ]     float64, (d,)

The integration state is MuJoCo's own (`mjSTATE_INTEGRATION`: time, qpos, qvel, warm start, controls, applied
forces …); the physics continues from it exactly. Gymnasium's observations and rewards also read quantities that
`mj_step` leaves behind, computed at the last stage of the last substep and so not a function of the integration
state: contact forces, body positions. The carried fields hold those. The tag names the task, so that the state of
another one is refused even where the sizes agree (HalfCheetah and Walker2d).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
COMPONENTS = {
    "qpos": mujoco.mjtState.mjSTATE_QPOS,
    "qvel": mujoco.mjtState.mjSTATE_QVEL,
    "act": mujoco.mjtState.mjSTATE_ACT,
    "ctrl": mujoco.mjtState.mjSTATE_CTRL,
    "qfrc_applied": mujoco.mjtState.mjSTATE_QFRC_APPLIED,
}
# Read by the rewards and terminations of Gymnasium's environments, before or after the step.
ALWAYS_CARRIED = ("xpos", "xipos", "site_xpos", "qfrc_constraint")


class StateLayout:
    """Where everything is in the state of one environment.

    Args:
        task: The environment's id, part of the tag.
        model: Its model.
        data: Its data, read for the shapes of fields only.
        fields: Names of the MjData fields that observations read.
    """

    def __init__(self, task: str, model: mujoco.MjModel, data: mujoco.MjData, fields: Iterable[str]) -> None:
        self.task = task
        self.signature = int(model.signature)
        self.integration = slice(0, mujoco.mj_stateSize(model, INTEGRATION))
        self._slices = {}
        for name, bit in COMPONENTS.items():
            start = mujoco.mj_stateSize(model, int(INTEGRATION) & (int(bit) - 1))
            self._slices[name] = slice(start, start + mujoco.mj_stateSize(model, bit))
        end = self.integration.stop
        self.carried = tuple(dict.fromkeys((*ALWAYS_CARRIED, *(f for f in fields if f not in COMPONENTS))))
        for name in self.carried:
            start, end = end, end + getattr(data, name).size
            self._slices[name] = slice(start, end)
        self.size = end + 1
        self._tag = float(zlib.crc32(f"{task} {self.signature}".encode()))

    def __getitem__(self, field: str) -> slice:
        """Where the elements of an MjData field are."""
        return self._slices[field]

    def read(self, model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.float64]:
        """Copy the state out of a simulation, which is not touched."""
        state = np.empty(self.size)
        mujoco.mj_getState(model, data, state[self.integration], INTEGRATION)
        for name in self.carried:
            state[self[name]] = getattr(data, name).ravel()
        state[-1] = self._tag
        return state

    def write(self, model: mujoco.MjModel, data: mujoco.MjData, state: NDArray[np.float64]) -> None:
        """Put a simulation into a state."""
        mujoco.mj_setState(model, data, state[self.integration], INTEGRATION)
        for name in self.carried:
            field = getattr(data, name)
            field[:] = state[self[name]].reshape(field.shape)

    def check(self, state: Any) -> NDArray[np.float64]:
        """Return the state, or say why it cannot be one of this task."""
        x = np.asarray(state, np.float64)
        if x.shape != (self.size,):
            raise ValueError(f"a {self.task} state has shape ({self.size},), not {x.shape}: is it of another task?")
        if x[-1] != self._tag:
            raise ValueError(
                f"this is not a state of {self.task}, though it has the same size: is it of another task?"
            )
        if not np.isfinite(x).all():
            raise ValueError(f"this {self.task} state holds NaN or infinity: the simulation it came from diverged")
        return x
