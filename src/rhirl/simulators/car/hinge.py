"""The revolute joints between the hull (A) and its wheels (B): a pin, a steering motor and an angle limit.

With r the arm from the hull's centre of mass to the pin, which is the wheel's centre, the pin asks
v_B = v_A + ω_A × r; at a limit the relative angle joins as a third row (see `box2d.joint`). Terms of Box2D in which
the wheel's own arm makes zeros are left out.

Cars advance side by side in lanes: `prepare_hinge` fills one lane of the table `hinges` (4 · HINGE,), `sweep_hinge`
works on it without branches, so that a loop over lanes runs in vector registers. `velocities` (5 · 3 · LANES,)
holds x, y, ω of each body.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import Pose, rotate
from rhirl.simulators.box2d.joint import (
    DET2,
    FREE,
    K11,
    K12,
    K22,
    LIMIT,
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
from rhirl.simulators.box2d.settings import ANGULAR_SLOP, DT, LANES, LINEAR_SLOP, ONE, ZERO, inline_kernel, kernel
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

# A hinge's own columns, after those of every joint: the speed its motor wants, and the arm.
SPEED, AX, AY = (OWN + i * LANES for i in range(3))
HINGE = OWN + 3 * LANES


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
    """Set up a hinge from the hull's sine and cosine, steering angle, motor speed and last step's impulse (4,)."""
    h = wheel * HINGE + lane
    ax, ay = rotate(s, c, ANCHORS[wheel, 0], ANCHORS[wheel, 1])
    k11 = MASS_SUM + ay * ay * INERTIA_A
    k12 = -ay * ax * INERTIA_A
    k13 = -ay * INERTIA_A
    k22 = MASS_SUM + ax * ax * INERTIA_A
    k23 = ax * INERTIA_A
    store_mass(hinges, h, k11, k12, k13, k22, k23, K33)
    hinges[h + SPEED], hinges[h + AX], hinges[h + AY] = speed, ax, ay
    limit = limit_reached(angle, LOWER_ANGLE, UPPER_ANGLE)
    store_impulse(hinges, h, limit, F(old[0]), F(old[1]), F(old[2]), F(old[3]))


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
    vax, vay, wa = velocities[lane], velocities[lane + LANES], velocities[lane + 2 * LANES]
    vbx, vby, wb = velocities[b], velocities[b + LANES], velocities[b + 2 * LANES]
    spin = drive_motor(hinges, h, wb - wa - hinges[h + SPEED], MOTOR_MASS, MAX_MOTOR_IMPULSE)
    wa = wa - INERTIA_A * spin
    wb = wb + INERTIA_B * spin
    dx, dy, dz = hold_pin(hinges, h, vbx - vax + wa * ay, vby - vay - wa * ax, wb - wa, K33)
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
    spin = drive_motor(hinges, h, wb - wa - hinges[h + SPEED], MOTOR_MASS, MAX_MOTOR_IMPULSE)
    wa = wa - INERTIA_A * spin
    wb = wb + INERTIA_B * spin
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
    beyond = ZERO
    aa, ab = hull.a, rim.a
    if limit != FREE:
        beyond, back = overshoot(limit, ab - aa, LOWER_ANGLE, UPPER_ANGLE)
        push = -MOTOR_MASS * back
        aa -= INERTIA_A * push
        ab += INERTIA_B * push
    ax, ay = rotate(np.sin(aa), np.cos(aa), ANCHORS[wheel, 0], ANCHORS[wheel, 1])
    ex = rim.x - hull.x - ax
    ey = rim.y - hull.y - ay
    length = np.sqrt(ex * ex + ey * ey)
    dx, dy = close_gap(ex, ey, MASS_SUM + INERTIA_A * ay * ay, -INERTIA_A * ax * ay, MASS_SUM + INERTIA_A * ax * ax)
    return (
        bool(length <= LINEAR_SLOP and beyond <= ANGULAR_SLOP),
        Pose(hull.x - MASS_A * dx, hull.y - MASS_A * dy, aa - INERTIA_A * (ax * dy - ay * dx)),
        Pose(rim.x + MASS_B * dx, rim.y + MASS_B * dy, ab),
    )
