"""What the controls do to a car: gas spins the rear wheels, brakes stop all, motors steer, tyres push.

A tyre pushes against the difference between its rim and the ground, never harder than the ground holds:
f ∝ (ω r - v_forward, -v_side), |f| ≤ limit, where grass holds 0.6 of what the road holds. All in float64, in the
order of Gymnasium's `Car.step`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium.envs.box2d.car_dynamics import (
    ENGINE_POWER,
    FRICTION_LIMIT,
    SIZE,
    WHEEL_MOMENT_OF_INERTIA,
    WHEEL_R,
)
from gymnasium.envs.box2d.car_racing import FPS
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import kernel
from rhirl.simulators.car.state import (
    ANGLE,
    BODY,
    GAS,
    OMEGA,
    ON_ROAD,
    PHASE,
    VX,
    VY,
    WHEEL,
    Frame,
)

F = np.float32

DT = 1.0 / FPS
GRASS_LIMIT, ROAD_LIMIT = FRICTION_LIMIT * 0.6, FRICTION_LIMIT * 1.0
STIFFNESS = 205000
RADIUS = 1.0 * WHEEL_R * SIZE
GAS_RATE = 0.1
BLOCKING_BRAKE, BRAKE_RATE = 0.9, 15
STEERING_GAIN, STEERING_RATE = 50.0, 3.0


class Push(NamedTuple):
    """Force of the ground on a wheel, and the speed at which its steering motor turns."""

    fx: F
    fy: F
    motor_speed: F


@kernel
def drive_wheel(
    state: NDArray[np.float64], wheel: int, frame: Frame, steer: float, gas: float, brake: float
) -> Push:
    """Spin one wheel for a step under Gymnasium's steer (of this wheel), gas and brake, and return its push."""
    b, w = BODY * (1 + wheel), WHEEL + 4 * wheel
    if wheel >= 2:
        state[w + GAS] += min(min(max(gas, 0.0), 1.0) - state[w + GAS], GAS_RATE)
    error = steer - np.float64(F(state[b + ANGLE]) - F(state[ANGLE]))
    motor_speed = np.sign(error) * min(STEERING_GAIN * abs(error), STEERING_RATE)

    forward_x, forward_y = -np.float64(frame.s), np.float64(frame.c)
    side_x, side_y = np.float64(frame.c), np.float64(frame.s)
    vx, vy = state[b + VX], state[b + VY]
    forward = forward_x * vx + forward_y * vy
    sideways = side_x * vx + side_y * vy

    omega = state[w + OMEGA]
    omega += DT * ENGINE_POWER * state[w + GAS] / WHEEL_MOMENT_OF_INERTIA / (abs(omega) + 5.0)
    if brake >= BLOCKING_BRAKE:
        omega = 0.0
    elif brake > 0:
        omega += -np.sign(omega) * min(abs(omega), BRAKE_RATE * brake)
    state[w + PHASE] += omega * DT

    along, across = -forward + omega * RADIUS, -sideways
    along *= STIFFNESS * SIZE * SIZE
    across *= STIFFNESS * SIZE * SIZE
    force = np.sqrt(along * along + across * across)
    limit = ROAD_LIMIT if state[w + ON_ROAD] > 0 else GRASS_LIMIT
    if abs(force) > limit:
        along = along / force * limit
        across = across / force * limit
    state[w + OMEGA] = omega - DT * along * RADIUS / WHEEL_MOMENT_OF_INERTIA
    return Push(
        F(across * side_x + along * forward_x),
        F(across * side_y + along * forward_y),
        F(motor_speed),
    )
