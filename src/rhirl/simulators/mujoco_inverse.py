"""From an observation back to a state, so that planning can start where a demonstration was."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.mujoco_observation import ObservationRule
from rhirl.simulators.mujoco_state import StateLayout


def invert_observation(
    env: Any,
    layout: StateLayout,
    rule: ObservationRule,
    x: NDArray[np.float64],
    near: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the state with observation x (n,) at the origin, or say what the observation does not tell.

    What x shows at its bounds may lie beyond them, and does if the state `near` lies beyond them there. The
    environment `env` is used to compute it, and left there.
    """
    x = x if near is None else unclip(layout, rule, x, near)
    mujoco.mj_resetData(env.model, env.data)
    needed = {"qpos": set(range(env.model.nq)) - horizontal_root(env.model), "qvel": set(range(env.model.nv))}
    values = {}
    for field, indices in needed.items():
        entries = rule.entries(field)
        if not indices <= set(rule.index[entries].tolist()):
            raise ValueError(
                f"the observation of {layout.task} does not tell all of {field}: no state follows from it"
            )
        values[field] = np.zeros(getattr(env.data, field).shape)
        values[field][rule.index[entries]] = x[entries]
    env.set_state(values["qpos"], values["qvel"])
    state = layout.read(env.model, env.data)
    for field in rule.fields:
        entries = rule.entries(field)
        state[layout[field]][rule.index[entries]] = x[entries]
    return state


def unclip(
    layout: StateLayout, rule: ObservationRule, x: NDArray[np.float64], near: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Replace the entries of x (n,) that are clipped by those of a state whose own are clipped alike."""
    unseen = x.copy()
    for field in rule.fields:
        entries = rule.entries(field)
        there = near[layout[field]][rule.index[entries]]
        low, high = rule.low[entries], rule.high[entries]
        beyond = ((x[entries] <= low) & (there < low)) | ((x[entries] >= high) & (there > high))
        unseen[entries[beyond]] = there[beyond]
    return unseen


def horizontal_root(model: mujoco.MjModel) -> set[int]:
    """Indices into qpos of where the robot stands on its plane, which the dynamics do not feel."""
    indices = set()
    for joint in range(model.njnt):
        address, kind = int(model.jnt_qposadr[joint]), model.jnt_type[joint]
        if model.body_parentid[model.jnt_bodyid[joint]] != 0:
            continue
        if kind == mujoco.mjtJoint.mjJNT_FREE and not model.opt.gravity[:2].any():
            indices |= {address, address + 1}
        elif kind == mujoco.mjtJoint.mjJNT_SLIDE and model.jnt_axis[joint] @ model.opt.gravity == 0:
            indices.add(address)
    return indices
