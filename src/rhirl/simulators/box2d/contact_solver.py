"""Contact impulses between a body and the static ground: friction, non-penetration and the removal of overlap.

For a point with arm r, normal n (from the ground to the body) and tangent t, an impulse p n changes the point's
normal velocity by p (1/m + (r × n)² / I). Two points of one contact are coupled and solved together: find x ≥ 0
with vₙ = K x + b ≥ 0 and x · vₙ = 0, by trying the four sign patterns in Box2D's order. There is no restitution.

Touching contacts of a body fill its slots 0, 1, … in the table `slots` (see `state.Scratch`); `sweep_slot` works on
one lane of it without branches, so that a loop over lanes runs in vector registers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d import state as w
from rhirl.simulators.box2d.frames import Frame, Motion, Pose, clamp, frame_of, greater, lesser, rotate, to_world
from rhirl.simulators.box2d.manifold import ON_EDGE
from rhirl.simulators.box2d.scene import FRICTION, INV_INERTIA, INV_MASS
from rhirl.simulators.box2d.settings import (
    DT_RATIO,
    HALF,
    LANES,
    LINEAR_SLOP,
    MAX_CONDITION_NUMBER,
    MAX_LINEAR_CORRECTION,
    ONE,
    SKIN,
    TWO,
    ZERO,
    inline_kernel,
    kernel,
)
from rhirl.simulators.box2d.state import World

F = np.float32

# Columns of a slot: points solved for; normal, arms, effective masses, impulses, K, its inverse, friction.
POINTS, NX, NY, X0, Y0, X1, Y1, NM0, TM0, NM1, TM1, N0, T0, N1, T1, K11, K12, K22, I11, I12, I22, MU = (
    i * LANES for i in range(22)
)


@kernel
def prepare_slot(
    world: World, i: int, slot: NDArray[np.float32], lane: int, pose: Pose, frame: Frame, warm: bool
) -> None:
    """Set up a slot for contact i of a body; `warm` starts from the impulses of the last step."""
    contact, manifold = world.contacts[i], world.manifolds[i]
    body, count = contact[w.BODY], contact[w.COUNT]
    mass, inertia = INV_MASS[body], INV_INERTIA[body]
    ratio = DT_RATIO if warm else ZERO
    slot[lane + N0], slot[lane + T0] = ratio * manifold[w.N0], ratio * manifold[w.T0]
    slot[lane + N1], slot[lane + T1] = ratio * manifold[w.N1], ratio * manifold[w.T1]
    slot[lane + MU] = FRICTION[body, contact[w.EDGE]]
    on_edge = contact[w.FACE] == ON_EDGE
    fx, fy, px, py = _face(manifold, frame, on_edge)
    nx, ny = (fx, fy) if on_edge else (-fx, -fy)
    slot[lane + NX], slot[lane + NY] = nx, ny
    x, y = _middle(manifold[w.X0], manifold[w.Y0], frame, on_edge, fx, fy, px, py)
    x0, y0 = x - pose.x, y - pose.y
    slot[lane + X0], slot[lane + Y0] = x0, y0
    slot[lane + NM0], slot[lane + TM0] = _masses(x0, y0, nx, ny, mass, inertia)
    slot[lane + POINTS] = ONE
    if count == 2:
        x, y = _middle(manifold[w.X1], manifold[w.Y1], frame, on_edge, fx, fy, px, py)
        x1, y1 = x - pose.x, y - pose.y
        arm0, arm1 = x0 * ny - y0 * nx, x1 * ny - y1 * nx
        k11 = mass + inertia * arm0 * arm0
        k22 = mass + inertia * arm1 * arm1
        k12 = mass + inertia * arm0 * arm1
        det = k11 * k22 - k12 * k12
        # Where the two points say nearly the same, Box2D solves for the first only.
        if k11 * k11 < MAX_CONDITION_NUMBER * det:
            if det != ZERO:
                det = ONE / det
            slot[lane + X1], slot[lane + Y1] = x1, y1
            slot[lane + NM1], slot[lane + TM1] = _masses(x1, y1, nx, ny, mass, inertia)
            slot[lane + K11], slot[lane + K12], slot[lane + K22] = k11, k12, k22
            slot[lane + I11], slot[lane + I12], slot[lane + I22] = det * k22, -det * k12, det * k11
            slot[lane + POINTS] = TWO


@kernel
def _face(manifold: NDArray[np.float32], frame: Frame, on_edge: bool) -> tuple[F, F, F, F]:
    """Return normal and point of the reference face in the world."""
    nx, ny, px, py = manifold[w.NX], manifold[w.NY], manifold[w.PX], manifold[w.PY]
    if not on_edge:
        nx, ny = rotate(frame.s, frame.c, nx, ny)
        px, py = to_world(frame, px, py)
    return nx, ny, px, py


@kernel
def _middle(x: F, y: F, frame: Frame, on_edge: bool, nx: F, ny: F, px: F, py: F) -> tuple[F, F]:
    """Return the point halfway between the two skins."""
    if on_edge:
        x, y = to_world(frame, x, y)
    lift = SKIN - ((x - px) * nx + (y - py) * ny)
    return (
        HALF * ((x + lift * nx) + (x - SKIN * nx)),
        HALF * ((y + lift * ny) + (y - SKIN * ny)),
    )


@kernel
def _masses(x: F, y: F, nx: F, ny: F, mass: F, inertia: F) -> tuple[F, F]:
    """Return the effective masses of a point along normal and tangent (n_y, -n_x)."""
    along_n = x * ny - y * nx
    along_t = x * -nx - y * ny
    return ONE / (mass + inertia * along_n * along_n), ONE / (mass + inertia * along_t * along_t)


@kernel
def warm_start_slot(slot: NDArray[np.float32], lane: int, body: int, v: Motion) -> Motion:
    """Apply the impulses the slot starts from."""
    mass, inertia = INV_MASS[body], INV_INERTIA[body]
    nx, ny = slot[lane + NX], slot[lane + NY]
    n, t = slot[lane + N0], slot[lane + T0]
    px, py = n * nx + t * ny, n * ny + t * -nx
    v = Motion(v.x + mass * px, v.y + mass * py, v.w + inertia * (slot[lane + X0] * py - slot[lane + Y0] * px))
    if slot[lane + POINTS] == TWO:
        n, t = slot[lane + N1], slot[lane + T1]
        px, py = n * nx + t * ny, n * ny + t * -nx
        v = Motion(v.x + mass * px, v.y + mass * py, v.w + inertia * (slot[lane + X1] * py - slot[lane + Y1] * px))
    return v


@inline_kernel
def sweep_slot(slot: NDArray[np.float32], lane: int, body: int, v: Motion) -> Motion:
    """Do one sweep: friction first, then non-penetration."""
    mass, inertia = INV_MASS[body], INV_INERTIA[body]
    nx, ny, mu = slot[lane + NX], slot[lane + NY], slot[lane + MU]
    x0, y0, x1, y1 = slot[lane + X0], slot[lane + Y0], slot[lane + X1], slot[lane + Y1]
    n0, t0, n1, t1 = slot[lane + N0], slot[lane + T0], slot[lane + N1], slot[lane + T1]
    mass0, mass1, k12 = slot[lane + NM0], slot[lane + NM1], slot[lane + K12]
    two = slot[lane + POINTS] == TWO

    v, t0 = _rub(v, x0, y0, nx, ny, slot[lane + TM0], mu * n0, t0, mass, inertia)
    u, rubbed = _rub(v, x1, y1, nx, ny, slot[lane + TM1], mu * n1, t1, mass, inertia)
    slot[lane + T0] = t0
    slot[lane + T1] = rubbed if two else t1

    # One point: p = max(n + Δ, 0).
    single = greater(n0 + -mass0 * ((v.x - v.w * y0) * nx + (v.y + v.w * x0) * ny), ZERO)

    # Two points: b = vₙ - K n, then the first of x = -K⁻¹ b, (x₀, 0), (0, x₁), (0, 0) that is consistent.
    b0 = (u.x - u.w * y0) * nx + (u.y + u.w * x0) * ny - (slot[lane + K11] * n0 + k12 * n1)
    b1 = (u.x - u.w * y1) * nx + (u.y + u.w * x1) * ny - (k12 * n0 + slot[lane + K22] * n1)
    both0 = -(slot[lane + I11] * b0 + slot[lane + I12] * b1)
    both1 = -(slot[lane + I12] * b0 + slot[lane + I22] * b1)
    only0, only1 = -mass0 * b0, -mass1 * b1
    use_both = (both0 >= ZERO) & (both1 >= ZERO)
    use_first = (only0 >= ZERO) & (k12 * only0 + b1 >= ZERO)
    use_second = (only1 >= ZERO) & (k12 * only1 + b0 >= ZERO)
    use_none = (b0 >= ZERO) & (b1 >= ZERO)
    p0, p1 = ZERO if use_none else n0, ZERO if use_none else n1
    p0, p1 = ZERO if use_second else p0, only1 if use_second else p1
    p0, p1 = only0 if use_first else p0, ZERO if use_first else p1
    p0, p1 = both0 if use_both else p0, both1 if use_both else p1

    p0, p1 = p0 if two else single, p1 if two else n1
    slot[lane + N0], slot[lane + N1] = p0, p1
    px, py = (single - n0) * nx, (single - n0) * ny
    p0x, p0y, p1x, p1y = (p0 - n0) * nx, (p0 - n0) * ny, (p1 - n1) * nx, (p1 - n1) * ny
    one = Motion(v.x + mass * px, v.y + mass * py, v.w + inertia * (x0 * py - y0 * px))
    turn = (x0 * p0y - y0 * p0x) + (x1 * p1y - y1 * p1x)
    pair = Motion(u.x + mass * (p0x + p1x), u.y + mass * (p0y + p1y), u.w + inertia * turn)
    return Motion(pair.x if two else one.x, pair.y if two else one.y, pair.w if two else one.w)


@inline_kernel
def _rub(
    v: Motion, x: F, y: F, nx: F, ny: F, tangent_mass: F, limit: F, old: F, mass: F, inertia: F
) -> tuple[Motion, F]:
    """Oppose sliding at one point with at most `limit`; return velocity and accumulated friction impulse."""
    vt = (v.x - v.w * y) * ny + (v.y + v.w * x) * -nx
    new = clamp(old + tangent_mass * -vt, -limit, limit)
    px, py = (new - old) * ny, (new - old) * -nx
    return Motion(v.x + mass * px, v.y + mass * py, v.w + inertia * (x * py - y * px)), new


@kernel
def store_impulses(slot: NDArray[np.float32], lane: int, manifold: NDArray[np.float32]) -> None:
    """Keep the impulses of a slot for the next step."""
    manifold[w.N0], manifold[w.T0] = slot[lane + N0], slot[lane + T0]
    if slot[lane + POINTS] == TWO:
        manifold[w.N1], manifold[w.T1] = slot[lane + N1], slot[lane + T1]


@kernel
def settle_contact(world: World, i: int, body: int, pose: Pose, rate: F) -> tuple[F, Pose]:
    """Push the body out of the ground once at contact i; return the least separation seen and the pose."""
    contact, manifold = world.contacts[i], world.manifolds[i]
    mass, inertia = INV_MASS[body], INV_INERTIA[body]
    on_edge = contact[w.FACE] == ON_EDGE
    least = ZERO
    for j in range(contact[w.COUNT]):
        frame = frame_of(pose, body)
        nx, ny, px, py = _face(manifold, frame, on_edge)
        x, y = (manifold[w.X0], manifold[w.Y0]) if j == 0 else (manifold[w.X1], manifold[w.Y1])
        if on_edge:
            x, y = to_world(frame, x, y)
        separation = (x - px) * nx + (y - py) * ny - SKIN - SKIN
        if not on_edge:
            nx, ny = -nx, -ny
        rx, ry = x - pose.x, y - pose.y
        least = lesser(least, separation)
        error = clamp(rate * (separation + LINEAR_SLOP), -MAX_LINEAR_CORRECTION, ZERO)
        arm = rx * ny - ry * nx
        push = -error / (mass + inertia * arm * arm)
        dx, dy = push * nx, push * ny
        pose = Pose(pose.x + mass * dx, pose.y + mass * dy, pose.a + inertia * (rx * dy - ry * dx))
    return least, pose
