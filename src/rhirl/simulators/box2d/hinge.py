"""The revolute joint between lander (A) and leg (B): a pin, a motor and an angle limit.

With r the arm from each centre of mass to the pin, the pin asks v_B + ω_B × r_B = v_A + ω_A × r_A; at a limit the
relative angle joins as a third row (see `joint`).

Hinge 0 holds the left leg, hinge 1 the right one. `prepare_hinge` fills one lane of the table `hinges` (see
`state.Scratch`), `sweep_hinge` works on it without branches, so that a loop over lanes runs in vector registers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import Frame, Motion, Pose, rotate
from rhirl.simulators.box2d.joint import (
    FREE,
    MOTOR,
    OWN,
    PX,
    PY,
    PZ,
    close_gap,
    drive_motor,
    hold_pin,
    limit_reached,
    overshoot,
    store_impulse,
    store_mass,
)
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
from rhirl.simulators.box2d.settings import ANGULAR_SLOP, DT, LANES, LINEAR_SLOP, ONE, ZERO, inline_kernel, kernel

F = np.float32

MAX_MOTOR_IMPULSE = DT * MAX_MOTOR_TORQUE
MASS_A, INERTIA_A = INV_MASS[LANDER], INV_INERTIA[LANDER]
MASS_B, INERTIA_B = INV_MASS[LEFT], INV_INERTIA[LEFT]
MASS_SUM = MASS_A + MASS_B
K33 = INERTIA_A + INERTIA_B
MOTOR_MASS = ONE / K33

# A hinge's own columns, after those of every joint: the arms.
AX, AY, BX, BY = (OWN + i * LANES for i in range(4))
HINGE = OWN + 4 * LANES


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
    """Set up a hinge at the start of a step: relative angle of the bodies, impulse `old` (4,) of the last step."""
    h = leg * HINGE + lane
    ax, ay = rotate(lander.s, lander.c, ZERO - CENTERS[LANDER, 0], ZERO - CENTERS[LANDER, 1])
    bx, by = rotate(foot.s, foot.c, ANCHORS[leg, 0], ANCHORS[leg, 1])
    k11 = MASS_SUM + ay * ay * INERTIA_A + by * by * INERTIA_B
    k12 = -ay * ax * INERTIA_A - by * bx * INERTIA_B
    k13 = -ay * INERTIA_A - by * INERTIA_B
    k22 = MASS_SUM + ax * ax * INERTIA_A + bx * bx * INERTIA_B
    k23 = ax * INERTIA_A + bx * INERTIA_B
    store_mass(hinges, h, k11, k12, k13, k22, k23, K33)
    hinges[h + AX], hinges[h + AY], hinges[h + BX], hinges[h + BY] = ax, ay, bx, by
    limit = limit_reached(angle - REFERENCE_ANGLE[leg], LOWER_ANGLE[leg], UPPER_ANGLE[leg])
    store_impulse(hinges, h, limit, old[0], old[1], old[2], old[3])


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
    vax, vay, wa = velocities[a], velocities[a + LANES], velocities[a + 2 * LANES]
    vbx, vby, wb = velocities[b], velocities[b + LANES], velocities[b + 2 * LANES]
    spin = drive_motor(hinges, h, wb - wa - MOTOR_SPEED[leg], MOTOR_MASS, MAX_MOTOR_IMPULSE)
    wa = wa - INERTIA_A * spin
    wb = wb + INERTIA_B * spin
    ex = vbx - wb * by - vax + wa * ay
    ey = vby + wb * bx - vay - wa * ax
    dx, dy, dz = hold_pin(hinges, h, ex, ey, wb - wa, K33)
    velocities[a] = vax - MASS_A * dx
    velocities[a + LANES] = vay - MASS_A * dy
    velocities[a + 2 * LANES] = wa - INERTIA_A * (ax * dy - ay * dx + dz)
    velocities[b] = vbx + MASS_B * dx
    velocities[b + LANES] = vby + MASS_B * dy
    velocities[b + 2 * LANES] = wb + INERTIA_B * (bx * dy - by * dx + dz)


@kernel
def settle_hinge(leg: int, limit: F, lander: Pose, foot: Pose) -> tuple[bool, Pose, Pose]:
    """Push the poses towards the pin and the limit once; also tell whether the error was already small."""
    beyond = ZERO
    aa, ab = lander.a, foot.a
    if limit != FREE:
        beyond, back = overshoot(limit, ab - aa - REFERENCE_ANGLE[leg], LOWER_ANGLE[leg], UPPER_ANGLE[leg])
        push = -MOTOR_MASS * back
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
    dx, dy = close_gap(ex, ey, k11, k12, k22)
    return (
        bool(length <= LINEAR_SLOP and beyond <= ANGULAR_SLOP),
        Pose(lander.x - MASS_A * dx, lander.y - MASS_A * dy, aa - INERTIA_A * (ax * dy - ay * dx)),
        Pose(foot.x + MASS_B * dx, foot.y + MASS_B * dy, ab + INERTIA_B * (bx * dy - by * dx)),
    )
