"""Lead many MuJoCo simulations by one policy: all of them advance by one step in one call of `mujoco.batch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from rhirl.simulators.leading import Led, disturbed_controls
from rhirl.simulators.mujoco_ending import Limits
from rhirl.simulators.mujoco_engine import Physics, quiet
from rhirl.simulators.mujoco_observation import ObservationRule
from rhirl.simulators.protocol import Policy

CONTROLS = mujoco.mjtState.mjSTATE_CTRL.value


def lead_batch(
    physics: Physics,
    threads: int,
    rule: ObservationRule,
    limits: Limits,
    starts: NDArray[np.float64],
    led: Led,
    policy: Policy,
    epsilon: NDArray[np.float32],
    action: Callable[[NDArray[Any]], NDArray[Any]],
) -> Led:
    """Lead simulations from integration states (N, d) under noise ε (L, N, m), and fill in what became of them.

    Their first observations are filled in already. Those that have lost their task are left where they are.
    """
    batch = Batch(physics.model, len(starts), threads)
    batch.state[:] = starts
    batch.warning[:] = 0
    alive = np.arange(len(starts), dtype=np.int32)
    with quiet():
        for k, draws in enumerate(epsilon):
            if len(alive) == 0:
                break
            V = action(disturbed_controls(policy, led.observations[alive, k], draws[alive]))
            controls = np.repeat(V[:, None].astype(np.float64), physics.frame_skip, axis=1)
            records = batch.rollout(
                physics.frame_skip, controls, control_spec=CONTROLS, record=physics.fields, ids=alive
            )
            values = {name: record.reshape(*record.shape[:2], -1)[:, -1] for name, record in records.items()}
            x = np.empty((len(alive), rule.size))
            rule.assemble(values, x)
            going = ~limits.ended(x) & ~batch.warning[alive, :, 1].any(axis=1)
            alive = alive[going]
            led.observations[alive, k + 1] = x[going]
            led.lasted[alive] = k + 1
    return led
