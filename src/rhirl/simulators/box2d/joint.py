"""The arithmetic of a revolute joint, whatever it joins: a lander and its leg, a car and its wheel.

A joint asks three things of two bodies: that they share a pin (x, y), that they turn against each other as a motor
wants, and, at a limit of their angle, that they turn no further (z). K is the 3 × 3 effective inverse mass of pin
and limit. Box2D inverts K anew in each of its sweeps; K does not change within a step, so the same inverse
determinants are formed once here.

Joints lie in tables of columns LANES apart, so that a loop over lanes runs in vector registers; what is specific to
a joint follows after the columns below. A lower limit pushes with z ≥ 0 only and an upper one with z ≤ 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import clamp
from rhirl.simulators.box2d.settings import (
    ANGULAR_SLOP,
    DT_RATIO,
    LANES,
    MAX_ANGULAR_CORRECTION,
    ONE,
    ZERO,
    inline_kernel,
)

F = np.float32

# Columns: impulse of pin, limit and motor; which limit pushes (1 lower, -1 upper, 0 none); K.
PX, PY, PZ, MOTOR, LIMIT, K11, K12, K13, K22, K23, DET2, DET3, CX, CY, CZ = (i * LANES for i in range(15))
OWN = 15 * LANES
AT_LOWER, FREE, AT_UPPER = ONE, ZERO, -ONE


@inline_kernel
def limit_reached(angle: F, lower: F, upper: F) -> F:
    """Tell which limit an angle has reached."""
    if angle <= lower:
        return AT_LOWER
    if angle >= upper:
        return AT_UPPER
    return FREE


@inline_kernel
def store_mass(joints: NDArray[np.float32], j: int, k11: F, k12: F, k13: F, k22: F, k23: F, k33: F) -> None:
    """Keep K in a lane, with what solving takes."""
    cx, cy, cz = k22 * k33 - k23 * k23, k23 * k13 - k12 * k33, k12 * k23 - k22 * k13
    joints[j + K11], joints[j + K12], joints[j + K13], joints[j + K22], joints[j + K23] = k11, k12, k13, k22, k23
    joints[j + CX], joints[j + CY], joints[j + CZ] = cx, cy, cz
    joints[j + DET2] = inverse(k11 * k22 - k12 * k12)
    joints[j + DET3] = inverse(k11 * cx + k12 * cy + k13 * cz)


@inline_kernel
def store_impulse(joints: NDArray[np.float32], j: int, limit: F, px: F, py: F, pz: F, motor: F) -> None:
    """Begin from the impulse of the last step; what a limit had pushed that is no longer reached is forgotten."""
    joints[j + LIMIT] = limit
    joints[j + PX], joints[j + PY] = px * DT_RATIO, py * DT_RATIO
    joints[j + PZ] = (pz if limit * pz > ZERO else ZERO) * DT_RATIO
    joints[j + MOTOR] = motor * DT_RATIO


@inline_kernel
def drive_motor(joints: NDArray[np.float32], j: int, excess: F, mass: F, most: F) -> F:
    """Return the impulse a motor adds where the bodies turn faster than it wants."""
    old = joints[j + MOTOR]
    motor = clamp(old + -mass * excess, -most, most)
    joints[j + MOTOR] = motor
    return motor - old


@inline_kernel
def hold_pin(joints: NDArray[np.float32], j: int, ex: F, ey: F, ez: F, k33: F) -> tuple[F, F, F]:
    """Return the impulse that undoes the error (ex, ey) of the pin and ez of the limit; the joint remembers it."""
    k11, k12, k13 = joints[j + K11], joints[j + K12], joints[j + K13]
    k22, k23 = joints[j + K22], joints[j + K23]
    det2, det3, limit, pz = joints[j + DET2], joints[j + DET3], joints[j + LIMIT], joints[j + PZ]
    dz = -(det3 * (k11 * (k22 * ez - k23 * ey) + k12 * (k23 * ex - k12 * ez) + k13 * (k12 * ey - k22 * ex)))
    dx = -(det3 * (ex * joints[j + CX] + ey * joints[j + CY] + ez * joints[j + CZ]))
    dy = -(det3 * (k11 * (ey * k33 - ez * k23) + k12 * (ez * k13 - ex * k33) + k13 * (ex * k23 - ey * k13)))

    # Without a limit, or if the limit would have to pull, it lets go and the pin is solved alone.
    alone = limit * (pz + dz) < ZERO or limit == FREE
    rx, ry = -ex + pz * k13, -ey + pz * k23
    dx = det2 * (k22 * rx - k12 * ry) if alone else dx
    dy = det2 * (k11 * ry - k12 * rx) if alone else dy
    dz = -pz if alone else dz
    joints[j + PX] += dx
    joints[j + PY] += dy
    joints[j + PZ] = ZERO if alone else pz + dz
    return dx, dy, dz


@inline_kernel
def overshoot(limit: F, angle: F, lower: F, upper: F) -> tuple[F, F]:
    """Return by how much an angle is beyond its limit, and how much of that to take back at once."""
    if limit == AT_LOWER:
        error = angle - lower
        return -error, clamp(error + ANGULAR_SLOP, -MAX_ANGULAR_CORRECTION, ZERO)
    error = angle - upper
    return error, clamp(error - ANGULAR_SLOP, ZERO, MAX_ANGULAR_CORRECTION)


@inline_kernel
def close_gap(ex: F, ey: F, k11: F, k12: F, k22: F) -> tuple[F, F]:
    """Return the push that closes the gap (ex, ey) of a pin."""
    det = inverse(k11 * k22 - k12 * k12)
    return -(det * (k22 * ex - k12 * ey)), -(det * (k11 * ey - k12 * ex))


@inline_kernel
def inverse(det: F) -> F:
    """Return 1 / det, or zero."""
    return ONE / det if det != ZERO else det
