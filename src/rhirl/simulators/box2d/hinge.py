"""The revolute joint between lander (A) and leg (B): a pin, a motor and an angle limit.

With r the arm from each centre of mass to the pin, the pin asks v_B + ω_B × r_B = v_A + ω_A × r_A; at a limit the
relative angle joins as a third row. K is the 3 × 3 effective inverse mass of these rows. Box2D inverts K anew in
each of its 180 sweeps; K does not change within a step, so the same inverse determinants are formed once here.

Hinge 0 holds the left leg, hinge 1 the right one. `prepare_hinge` fills one lane of the table `hinges` (see
`state.Scratch`), `sweep_hinge` works on it without branches, so that a loop over lanes runs in vector registers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import Frame, Motion, Pose, clamp, rotate
from rhirl.simulators.box2d.scene import (
    ANCHORS,
    CENTERS,
    INV_INERTIA,
    INV_MASS,
    LANDER,
    LEFT,
    LOWER_ANGLE,
    MAX_MOTOR_TORQUE,
    MOTOR_SPEED,
    REFERENCE_ANGLE,
    UPPER_ANGLE,
)
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

F = np.float32

MAX_MOTOR_IMPULSE = DT * MAX_MOTOR_TORQUE
MASS_A, INERTIA_A = INV_MASS[LANDER], INV_INERTIA[LANDER]
MASS_B, INERTIA_B = INV_MASS[LEFT], INV_INERTIA[LEFT]
MASS_SUM = MASS_A + MASS_B
K33 = INERTIA_A + INERTIA_B
MOTOR_MASS = ONE / K33

# Columns of a hinge: impulse of pin, limit and motor; which limit pushes (1 lower, -1 upper, 0 none); arms; K.
PX, PY, PZ, MOTOR, LIMIT, AX, AY, BX, BY, K11, K12, K13, K22, K23, DET2, DET3, CX, CY, CZ = (
    i * LANES for i in range(19)
)
HINGE = 19 * LANES
AT_LOWER, FREE, AT_UPPER = ONE, ZERO, -ONE


@kernel
def prepare_hinge(
    hinges: NDArray[np.float32],
    lane: int,
    leg: int,
    old: NDArray[np.float32],
    lander: Frame,
    foot: Frame,
    angle: F,
) -> None:
    """Set up a hinge at the start of a step: relative angle of the bodies, impulse `old` (4,) of the last step.

    What a limit had pushed that is no longer reached is forgotten. A lower limit pushes with z ≥ 0 only and an
    upper one with z ≤ 0, so the sign of z tells which limit acted.
    """
    h = leg * HINGE + lane
    ax, ay = rotate(lander.s, lander.c, ZERO - CENTERS[LANDER, 0], ZERO - CENTERS[LANDER, 1])
    bx, by = rotate(foot.s, foot.c, ANCHORS[leg, 0], ANCHORS[leg, 1])
    k11 = MASS_SUM + ay * ay * INERTIA_A + by * by * INERTIA_B
    k12 = -ay * ax * INERTIA_A - by * bx * INERTIA_B
    k13 = -ay * INERTIA_A - by * INERTIA_B
    k22 = MASS_SUM + ax * ax * INERTIA_A + bx * bx * INERTIA_B
    k23 = ax * INERTIA_A + bx * INERTIA_B
    cx, cy, cz = k22 * K33 - k23 * k23, k23 * k13 - k12 * K33, k12 * k23 - k22 * k13
    hinges[h + AX], hinges[h + AY], hinges[h + BX], hinges[h + BY] = ax, ay, bx, by
    hinges[h + K11], hinges[h + K12], hinges[h + K13], hinges[h + K22], hinges[h + K23] = k11, k12, k13, k22, k23
    hinges[h + CX], hinges[h + CY], hinges[h + CZ] = cx, cy, cz
    hinges[h + DET2] = _inverse(k11 * k22 - k12 * k12)
    hinges[h + DET3] = _inverse(k11 * cx + k12 * cy + k13 * cz)
    angle = angle - REFERENCE_ANGLE[leg]
    limit = FREE
    if angle <= LOWER_ANGLE[leg]:
        limit = AT_LOWER
    elif angle >= UPPER_ANGLE[leg]:
        limit = AT_UPPER
    hinges[h + LIMIT] = limit
    z = old[2] if limit * old[2] > ZERO else ZERO
    hinges[h + PX], hinges[h + PY], hinges[h + PZ], hinges[h + MOTOR] = (
        old[0] * DT_RATIO,
        old[1] * DT_RATIO,
        z * DT_RATIO,
        old[3] * DT_RATIO,
    )


@kernel
def _inverse(det: F) -> F:
    return ONE / det if det != ZERO else det


@kernel
def warm_start_hinge(
    hinges: NDArray[np.float32], lane: int, leg: int, lander: Motion, foot: Motion
) -> tuple[Motion, Motion]:
    """Apply the impulse the hinge starts from."""
    h = leg * HINGE + lane
    px, py = hinges[h + PX], hinges[h + PY]
    turn_a = hinges[h + AX] * py - hinges[h + AY] * px + hinges[h + MOTOR] + hinges[h + PZ]
    turn_b = hinges[h + BX] * py - hinges[h + BY] * px + hinges[h + MOTOR] + hinges[h + PZ]
    return (
        Motion(lander.x - MASS_A * px, lander.y - MASS_A * py, lander.w - INERTIA_A * turn_a),
        Motion(foot.x + MASS_B * px, foot.y + MASS_B * py, foot.w + INERTIA_B * turn_b),
    )


@inline_kernel
def sweep_hinge(velocities: NDArray[np.float32], hinges: NDArray[np.float32], lane: int, leg: int) -> None:
    """Do one sweep: motor first, then the pin together with the limit."""
    h = leg * HINGE + lane
    a, b = lane, (LEFT + leg) * 3 * LANES + lane
    ax, ay, bx, by = hinges[h + AX], hinges[h + AY], hinges[h + BX], hinges[h + BY]
    k11, k12, k13 = hinges[h + K11], hinges[h + K12], hinges[h + K13]
    k22, k23 = hinges[h + K22], hinges[h + K23]
    det2, det3, limit, pz = hinges[h + DET2], hinges[h + DET3], hinges[h + LIMIT], hinges[h + PZ]
    vax, vay, wa = velocities[a], velocities[a + LANES], velocities[a + 2 * LANES]
    vbx, vby, wb = velocities[b], velocities[b + LANES], velocities[b + 2 * LANES]

    old = hinges[h + MOTOR]
    motor = clamp(old + -MOTOR_MASS * (wb - wa - MOTOR_SPEED[leg]), -MAX_MOTOR_IMPULSE, MAX_MOTOR_IMPULSE)
    hinges[h + MOTOR] = motor
    wa = wa - INERTIA_A * (motor - old)
    wb = wb + INERTIA_B * (motor - old)

    # Error (ex, ey) of the pin and ez of the limit, and the impulse that undoes all three.
    ex = vbx - wb * by - vax + wa * ay
    ey = vby + wb * bx - vay - wa * ax
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
    turn_a = ax * dy - ay * dx + dz
    turn_b = bx * dy - by * dx + dz
    hinges[h + PX] += dx
    hinges[h + PY] += dy
    hinges[h + PZ] = ZERO if alone else pz + dz
    velocities[a] = vax - MASS_A * dx
    velocities[a + LANES] = vay - MASS_A * dy
    velocities[a + 2 * LANES] = wa - INERTIA_A * turn_a
    velocities[b] = vbx + MASS_B * dx
    velocities[b + LANES] = vby + MASS_B * dy
    velocities[b + 2 * LANES] = wb + INERTIA_B * turn_b


@kernel
def settle_hinge(leg: int, limit: F, lander: Pose, foot: Pose) -> tuple[bool, Pose, Pose]:
    """Push the poses towards the pin and the limit once; also tell whether the error was already small."""
    angular_error = ZERO
    aa, ab = lander.a, foot.a
    if limit != FREE:
        angle = ab - aa - REFERENCE_ANGLE[leg]
        if limit == AT_LOWER:
            error = angle - LOWER_ANGLE[leg]
            angular_error = -error
            error = clamp(error + ANGULAR_SLOP, -MAX_ANGULAR_CORRECTION, ZERO)
        else:
            error = angle - UPPER_ANGLE[leg]
            angular_error = error
            error = clamp(error - ANGULAR_SLOP, ZERO, MAX_ANGULAR_CORRECTION)
        push = -MOTOR_MASS * error
        aa -= INERTIA_A * push
        ab += INERTIA_B * push
    ax, ay = rotate(np.sin(aa), np.cos(aa), ZERO - CENTERS[LANDER, 0], ZERO - CENTERS[LANDER, 1])
    bx, by = rotate(np.sin(ab), np.cos(ab), ANCHORS[leg, 0], ANCHORS[leg, 1])
    ex = foot.x + bx - lander.x - ax
    ey = foot.y + by - lander.y - ay
    length = np.sqrt(ex * ex + ey * ey)
    k11 = MASS_SUM + INERTIA_A * ay * ay + INERTIA_B * by * by
    k12 = -INERTIA_A * ax * ay - INERTIA_B * bx * by
    k22 = MASS_SUM + INERTIA_A * ax * ax + INERTIA_B * bx * bx
    det = _inverse(k11 * k22 - k12 * k12)
    dx = -(det * (k22 * ex - k12 * ey))
    dy = -(det * (k11 * ey - k12 * ex))
    return (
        bool(length <= LINEAR_SLOP and angular_error <= ANGULAR_SLOP),
        Pose(lander.x - MASS_A * dx, lander.y - MASS_A * dy, aa - INERTIA_A * (ax * dy - ay * dx)),
        Pose(foot.x + MASS_B * dx, foot.y + MASS_B * dy, ab + INERTIA_B * (bx * dy - by * dx)),
    )
