"""The revolute joints between the hull (A) and its wheels (B): a pin, a steering motor and an angle limit.

With r the arm from the hull's centre of mass to the pin, which is the wheel's centre, the pin asks
v_B = v_A + ω_A × r; at a limit the relative angle joins as a third row. K is the 3 × 3 effective inverse mass of
these rows; it does not change within a step. Terms of Box2D in which the wheel's own arm makes zeros are left out.

Cars advance side by side in lanes: `prepare_hinge` fills one lane of the table `hinges` (4 · 19 · LANES,),
`sweep_hinge` works on it without branches, so that a loop over lanes runs in vector registers. `velocities`
(5 · 3 · LANES,) holds x, y, ω of each body.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import Pose, clamp, rotate
from rhirl.simulators.box2d.settings import (
    ANGULAR_SLOP,
    DT,
    DT_RATIO,
    LANES,
    LINEAR_SLOP,
    MAX_ANGULAR_CORRECTION,
    ONE,
    ZERO,
    inline_kernel,
    kernel,
)
from rhirl.simulators.car.scene import (
    ANCHORS,
    INERTIA_A,
    INERTIA_B,
    LOWER_ANGLE,
    MASS_A,
    MASS_B,
    MAX_MOTOR_TORQUE,
    UPPER_ANGLE,
)

F = np.float32

MAX_MOTOR_IMPULSE = DT * MAX_MOTOR_TORQUE
MASS_SUM = MASS_A + MASS_B
K33 = INERTIA_A + INERTIA_B
MOTOR_MASS = ONE / K33

# Columns: impulse of pin, limit and motor; which limit pushes (1 lower, -1 upper, 0 none); motor speed; arm; K.
PX, PY, PZ, MOTOR, LIMIT, SPEED, AX, AY, K11, K12, K13, K22, K23, DET2, DET3, CX, CY, CZ = (
    i * LANES for i in range(18)
)
HINGE = 18 * LANES
AT_LOWER, FREE, AT_UPPER = ONE, ZERO, -ONE


@inline_kernel
def limit_reached(angle: F) -> F:
    """Tell which limit a steering angle has reached."""
    if angle <= LOWER_ANGLE:
        return AT_LOWER
    if angle >= UPPER_ANGLE:
        return AT_UPPER
    return FREE


@kernel
def prepare_hinge(
    hinges: NDArray[np.float32],
    lane: int,
    wheel: int,
    old: NDArray[np.float64],
    s: F,
    c: F,
    angle: F,
    speed: F,
) -> None:
    """Set up a hinge from the hull's sine and cosine, steering angle, motor speed and last step's impulse (4,).

    What a limit had pushed that is no longer reached is forgotten. A lower limit pushes with z ≥ 0 only and an
    upper one with z ≤ 0, so the sign of z tells which limit acted.
    """
    h = wheel * HINGE + lane
    ax, ay = rotate(s, c, ANCHORS[wheel, 0], ANCHORS[wheel, 1])
    k11 = MASS_SUM + ay * ay * INERTIA_A
    k12 = -ay * ax * INERTIA_A
    k13 = -ay * INERTIA_A
    k22 = MASS_SUM + ax * ax * INERTIA_A
    k23 = ax * INERTIA_A
    cx, cy, cz = k22 * K33 - k23 * k23, k23 * k13 - k12 * K33, k12 * k23 - k22 * k13
    hinges[h + SPEED], hinges[h + AX], hinges[h + AY] = speed, ax, ay
    hinges[h + K11], hinges[h + K12], hinges[h + K13], hinges[h + K22], hinges[h + K23] = k11, k12, k13, k22, k23
    hinges[h + CX], hinges[h + CY], hinges[h + CZ] = cx, cy, cz
    hinges[h + DET2] = _inverse(k11 * k22 - k12 * k12)
    hinges[h + DET3] = _inverse(k11 * cx + k12 * cy + k13 * cz)
    limit = limit_reached(angle)
    hinges[h + LIMIT] = limit
    pushed = F(old[2])
    hinges[h + PX], hinges[h + PY] = F(old[0]) * DT_RATIO, F(old[1]) * DT_RATIO
    hinges[h + PZ] = (pushed if limit * pushed > ZERO else ZERO) * DT_RATIO
    hinges[h + MOTOR] = F(old[3]) * DT_RATIO


@inline_kernel
def _inverse(det: F) -> F:
    return ONE / det if det != ZERO else det


@kernel
def warm_start_hinge(velocities: NDArray[np.float32], hinges: NDArray[np.float32], lane: int, wheel: int) -> None:
    """Apply the impulse the hinge starts from."""
    h, b = wheel * HINGE + lane, (1 + wheel) * 3 * LANES + lane
    px, py = hinges[h + PX], hinges[h + PY]
    turn = hinges[h + AX] * py - hinges[h + AY] * px + hinges[h + MOTOR] + hinges[h + PZ]
    velocities[lane] -= MASS_A * px
    velocities[lane + LANES] -= MASS_A * py
    velocities[lane + 2 * LANES] -= INERTIA_A * turn
    velocities[b] += MASS_B * px
    velocities[b + LANES] += MASS_B * py
    velocities[b + 2 * LANES] += INERTIA_B * (hinges[h + MOTOR] + hinges[h + PZ])


@inline_kernel
def sweep_hinge(velocities: NDArray[np.float32], hinges: NDArray[np.float32], lane: int, wheel: int) -> None:
    """Do one sweep: motor first, then the pin together with the limit."""
    h, b = wheel * HINGE + lane, (1 + wheel) * 3 * LANES + lane
    ax, ay = hinges[h + AX], hinges[h + AY]
    k11, k12, k13 = hinges[h + K11], hinges[h + K12], hinges[h + K13]
    k22, k23 = hinges[h + K22], hinges[h + K23]
    det2, det3, limit, pz = hinges[h + DET2], hinges[h + DET3], hinges[h + LIMIT], hinges[h + PZ]
    vax, vay, wa = velocities[lane], velocities[lane + LANES], velocities[lane + 2 * LANES]
    vbx, vby, wb = velocities[b], velocities[b + LANES], velocities[b + 2 * LANES]

    old = hinges[h + MOTOR]
    motor = clamp(old + -MOTOR_MASS * (wb - wa - hinges[h + SPEED]), -MAX_MOTOR_IMPULSE, MAX_MOTOR_IMPULSE)
    hinges[h + MOTOR] = motor
    wa = wa - INERTIA_A * (motor - old)
    wb = wb + INERTIA_B * (motor - old)

    # Error (ex, ey) of the pin and ez of the limit, and the impulse that undoes all three.
    ex = vbx - vax + wa * ay
    ey = vby - vay - wa * ax
    ez = wb - wa
    dz = -(det3 * (k11 * (k22 * ez - k23 * ey) + k12 * (k23 * ex - k12 * ez) + k13 * (k12 * ey - k22 * ex)))
    dx = -(det3 * (ex * hinges[h + CX] + ey * hinges[h + CY] + ez * hinges[h + CZ]))
    dy = -(det3 * (k11 * (ey * K33 - ez * k23) + k12 * (ez * k13 - ex * K33) + k13 * (ex * k23 - ey * k13)))

    # Without a limit, or if the limit would have to pull, it lets go and the pin is solved alone.
    alone = limit * (pz + dz) < ZERO or limit == FREE
    rx, ry = -ex + pz * k13, -ey + pz * k23
    dx = det2 * (k22 * rx - k12 * ry) if alone else dx
    dy = det2 * (k11 * ry - k12 * rx) if alone else dy
    dz = -pz if alone else dz
    hinges[h + PX] += dx
    hinges[h + PY] += dy
    hinges[h + PZ] = ZERO if alone else pz + dz
    velocities[lane] = vax - MASS_A * dx
    velocities[lane + LANES] = vay - MASS_A * dy
    velocities[lane + 2 * LANES] = wa - INERTIA_A * (ax * dy - ay * dx + dz)
    velocities[b] = vbx + MASS_B * dx
    velocities[b + LANES] = vby + MASS_B * dy
    velocities[b + 2 * LANES] = wb + INERTIA_B * dz


@inline_kernel
def sweep_free_hinge(velocities: NDArray[np.float32], hinges: NDArray[np.float32], lane: int, wheel: int) -> None:
    """Do the same sweep where no lane's hinge is at a limit, at less than half the work."""
    h, b = wheel * HINGE + lane, (1 + wheel) * 3 * LANES + lane
    ax, ay = hinges[h + AX], hinges[h + AY]
    k11, k12, k22, det2 = hinges[h + K11], hinges[h + K12], hinges[h + K22], hinges[h + DET2]
    vax, vay, wa = velocities[lane], velocities[lane + LANES], velocities[lane + 2 * LANES]
    vbx, vby, wb = velocities[b], velocities[b + LANES], velocities[b + 2 * LANES]
    old = hinges[h + MOTOR]
    motor = clamp(old + -MOTOR_MASS * (wb - wa - hinges[h + SPEED]), -MAX_MOTOR_IMPULSE, MAX_MOTOR_IMPULSE)
    hinges[h + MOTOR] = motor
    wa = wa - INERTIA_A * (motor - old)
    wb = wb + INERTIA_B * (motor - old)
    ex = vbx - vax + wa * ay
    ey = vby - vay - wa * ax
    dx = det2 * (k22 * -ex - k12 * -ey)
    dy = det2 * (k11 * -ey - k12 * -ex)
    hinges[h + PX] += dx
    hinges[h + PY] += dy
    velocities[lane] = vax - MASS_A * dx
    velocities[lane + LANES] = vay - MASS_A * dy
    velocities[lane + 2 * LANES] = wa - INERTIA_A * (ax * dy - ay * dx)
    velocities[b] = vbx + MASS_B * dx
    velocities[b + LANES] = vby + MASS_B * dy
    velocities[b + 2 * LANES] = wb


@kernel
def any_limited(hinges: NDArray[np.float32], wheel: int, lanes: int) -> bool:
    """Tell whether this wheel's hinge is at a limit in any lane."""
    first = wheel * HINGE + LIMIT
    return bool((hinges[first : first + lanes] != FREE).any())


@kernel
def settle_hinge(wheel: int, limit: F, hull: Pose, rim: Pose) -> tuple[bool, Pose, Pose]:
    """Push the poses of hull and wheel towards pin and limit once; also tell whether the error was small."""
    angular_error = ZERO
    aa, ab = hull.a, rim.a
    if limit != FREE:
        angle = ab - aa
        if limit == AT_LOWER:
            error = angle - LOWER_ANGLE
            angular_error = -error
            error = clamp(error + ANGULAR_SLOP, -MAX_ANGULAR_CORRECTION, ZERO)
        else:
            error = angle - UPPER_ANGLE
            angular_error = error
            error = clamp(error - ANGULAR_SLOP, ZERO, MAX_ANGULAR_CORRECTION)
        push = -MOTOR_MASS * error
        aa -= INERTIA_A * push
        ab += INERTIA_B * push
    ax, ay = rotate(np.sin(aa), np.cos(aa), ANCHORS[wheel, 0], ANCHORS[wheel, 1])
    ex = rim.x - hull.x - ax
    ey = rim.y - hull.y - ay
    length = np.sqrt(ex * ex + ey * ey)
    k11 = MASS_SUM + INERTIA_A * ay * ay
    k12 = -INERTIA_A * ax * ay
    k22 = MASS_SUM + INERTIA_A * ax * ax
    det = _inverse(k11 * k22 - k12 * k12)
    dx = -(det * (k22 * ex - k12 * ey))
    dy = -(det * (k11 * ey - k12 * ex))
    return (
        bool(length <= LINEAR_SLOP and angular_error <= ANGULAR_SLOP),
        Pose(hull.x - MASS_A * dx, hull.y - MASS_A * dy, aa - INERTIA_A * (ax * dy - ay * dx)),
        Pose(rim.x + MASS_B * dx, rim.y + MASS_B * dy, ab),
    )
