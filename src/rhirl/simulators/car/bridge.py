"""Read a running CarRacing."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.car import state as s


def read_car(env: gymnasium.Env[Any, Any]) -> NDArray[np.float64]:
    """Return the state (STATE_DIM,) of an environment's car."""
    racing: Any = env.unwrapped
    state = np.zeros(s.STATE_DIM)
    for i, body in enumerate([racing.car.hull, *racing.car.wheels]):
        v = body.linearVelocity
        row = *body.worldCenter, body.angle, v.x, v.y, body.angularVelocity
        state[s.BODY * i : s.BODY * i + 6] = row
    for i, wheel in enumerate(racing.car.wheels):
        joint = wheel.joint
        impulse = *joint.GetReactionForce(1.0), joint.GetReactionTorque(1.0), joint.GetMotorTorque(1.0)
        state[s.JOINT + 4 * i : s.JOINT + 4 * i + 4] = impulse
        state[s.WHEEL + 4 * i : s.WHEEL + 4 * i + 4] = wheel.omega, wheel.phase, wheel.gas, bool(wheel.tiles)
    state[s.TIME : s.VISITED] = racing.t, racing.reward, racing.prev_reward, racing.tile_visited_count, racing.new_lap
    return state
