"""Lead many MuJoCo simulations by one policy: it is asked for all of them at once, then all advance by one step.

As rollouts do (`mujoco_engine`), they advance in one call of `mujoco.batch` where observations are made of what
`mj_step` computes, and else in threads, each with one simulation that is put into one state after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from rhirl.simulators.leading import Led
from rhirl.simulators.mujoco_ending import Limits
from rhirl.simulators.mujoco_engine import POST_CONSTRAINT, Physics, quiet
from rhirl.simulators.mujoco_observation import ObservationRule
from rhirl.simulators.mujoco_state import INTEGRATION
from rhirl.simulators.protocol import Policy

CONTROLS = mujoco.mjtState.mjSTATE_CTRL.value
Floats = NDArray[np.float64]
Ids = NDArray[np.int32]


class Flock(Protocol):
    """Simulations that advance together."""

    def advance(self, ids: Ids, actions: NDArray[Any]) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
        """Take one step with actions (A, m) in some of them; return their fields (A, size), and which are sound."""
        ...


def lead_flock(
    physics: Physics,
    threads: int,
    rule: ObservationRule,
    limits: Limits,
    starts: Floats,
    led: Led,
    policy: Policy,
    epsilon: NDArray[np.float32],
    action: Callable[[NDArray[Any]], NDArray[Any]],
) -> Led:
    """Lead simulations from integration states (N, d) under noise ε (L, N, m), and fill in what became of them.

    Their first observations are filled in already. Those that have lost their task are left where they are.
    """
    kind = ThreadFlock if POST_CONSTRAINT & set(physics.fields) else BatchFlock
    flock: Flock = kind(physics, threads, starts)
    alive = np.arange(len(starts), dtype=np.int32)
    with quiet():
        for k, draws in enumerate(epsilon):
            if len(alive) == 0:
                break
            V = led.controls[alive, k] = policy(led.observations[alive, k]) + draws[alive]
            values, sound = flock.advance(alive, action(V))
            x = np.empty((len(alive), rule.size))
            rule.assemble(values, x)
            going = ~limits.ended(x) & sound
            alive = alive[going]
            led.observations[alive, k + 1] = x[going]
            led.lasted[alive] = k + 1
    return led


class BatchFlock:
    """Simulations in `mujoco.batch`."""

    def __init__(self, physics: Physics, threads: int, starts: Floats) -> None:
        self._physics, self._batch = physics, Batch(physics.model, len(starts), threads)
        self._batch.state[:] = starts
        self._batch.warning[:] = 0

    def advance(self, ids: Ids, actions: NDArray[Any]) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
        """Take one step in some of them."""
        frame_skip, fields = self._physics.frame_skip, self._physics.fields
        controls = np.repeat(actions[:, None].astype(np.float64), frame_skip, axis=1)
        records = self._batch.rollout(frame_skip, controls, control_spec=CONTROLS, record=fields, ids=ids)
        values = {name: record.reshape(*record.shape[:2], -1)[:, -1] for name, record in records.items()}
        return values, ~self._batch.warning[ids, :, 1].any(axis=1)


class ThreadFlock:
    """States of simulations that threads advance, with `mj_rnePostConstraint` at the end of each step."""

    def __init__(self, physics: Physics, threads: int, starts: Floats) -> None:
        self._physics, self._states = physics, starts.copy()
        self._data = [mujoco.MjData(physics.model) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads, "mujoco")

    def advance(self, ids: Ids, actions: NDArray[Any]) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
        """Take one step in some of them."""
        sizes = {name: getattr(self._data[0], name).size for name in self._physics.fields}
        values = {name: np.empty((len(ids), size)) for name, size in sizes.items()}
        sound = np.empty(len(ids), np.bool_)

        def drive(data: mujoco.MjData, part: NDArray[np.intp]) -> None:
            model, step, finish = self._physics.model, mujoco.mj_step, mujoco.mj_rnePostConstraint
            views = [(values[name], getattr(data, name).reshape(-1)) for name in sizes]
            for i in part:
                state = self._states[ids[i]]
                mujoco.mj_setState(model, data, state, INTEGRATION)
                data.warning.number[:] = 0
                data.ctrl[:] = actions[i]
                step(model, data, self._physics.frame_skip)
                finish(model, data)
                mujoco.mj_getState(model, data, state, INTEGRATION)
                for rows, view in views:
                    rows[i] = view
                sound[i] = not data.warning.number.any()

        parts = np.array_split(np.arange(len(ids)), len(self._data))
        list(self._pool.map(drive, self._data, parts))
        return values, sound
