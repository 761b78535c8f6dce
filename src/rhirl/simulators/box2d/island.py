"""One discrete step of lander, legs and whatever they touch: velocities, then positions, then sleep.

Sequential impulses sweep 180 times over the hinges (right, then left) and the touching contacts. A contact acts on
one body only, so contacts of different bodies may be swept in any order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d import hinge as hg
from rhirl.simulators.box2d import joint as jt
from rhirl.simulators.box2d.contact_solver import (
    POINTS,
    prepare_slot,
    settle_contact,
    store_impulses,
    sweep_slot,
    warm_start_slot,
)
from rhirl.simulators.box2d.contacts import wake
from rhirl.simulators.box2d.frames import Motion, Pose, lesser
from rhirl.simulators.box2d.hinge import prepare_hinge, settle_hinge, sweep_hinge, warm_start_hinge
from rhirl.simulators.box2d.scene import BODIES, INV_MASS, LANDER, LEFT, LEFT_HINGE, RIGHT, RIGHT_HINGE
from rhirl.simulators.box2d.settings import (
    ANGULAR_SLEEP_TOLERANCE,
    BAUMGARTE,
    DT,
    LANES,
    LINEAR_SLEEP_TOLERANCE,
    LINEAR_SLOP,
    MAX_FLOAT,
    MAX_ROTATION,
    MAX_TRANSLATION,
    POSITION_ITERATIONS,
    TIME_TO_SLEEP,
    VELOCITY_ITERATIONS,
    ZERO,
    f32,
    inline_kernel,
    kernel,
)
from rhirl.simulators.box2d.starts import begin_step
from rhirl.simulators.box2d.state import (
    BODY,
    COUNT,
    SLEEP,
    Scratch,
    World,
    contact_count,
    frame_at,
    motion_of,
    place,
    pose_of,
    set_motion,
)

F = np.float32
SEPARATION_TOLERANCE = f32(-3.0) * LINEAR_SLOP


@kernel
def prepare_island(world: World, scratch: Scratch, lane: int, gravity: F, force_x: F, force_y: F) -> None:
    """Set up a lane for its sweeps: gravity and force (on the lander), constraints, impulses of the last step."""
    for body in range(BODIES):
        wake(world, body)
        begin_step(world, scratch, lane, body)
    clear_slots(scratch, lane)
    for i in range(contact_count(world) - 1, -1, -1):
        if world.contacts[i, COUNT] > 0:
            body = world.contacts[i, BODY]
            scratch.rows[lane, body, scratch.counts[lane, body]] = i
            scratch.counts[lane, body] += 1

    v = motion_of(world, LANDER)
    push_x, push_y = INV_MASS[LANDER] * force_x, INV_MASS[LANDER] * force_y
    lander = _warm_start(
        world, scratch, lane, LANDER, Motion(v.x + DT * push_x, v.y + DT * (gravity + push_y), v.w)
    )
    v = motion_of(world, LEFT)
    left = _warm_start(world, scratch, lane, LEFT, Motion(v.x, v.y + DT * gravity, v.w))
    v = motion_of(world, RIGHT)
    right = _warm_start(world, scratch, lane, RIGHT, Motion(v.x, v.y + DT * gravity, v.w))
    for leg in range(2):
        prepare_hinge(
            scratch.hinges,
            lane,
            leg,
            world.hinges[leg],
            frame_at(scratch, lane, LANDER),
            frame_at(scratch, lane, LEFT + leg),
            pose_of(world, LEFT + leg).a - pose_of(world, LANDER).a,
        )
    lander, right = warm_start_hinge(scratch.hinges, lane, RIGHT_HINGE, lander, right)
    lander, left = warm_start_hinge(scratch.hinges, lane, LEFT_HINGE, lander, left)
    _set_velocity(scratch, lane, LANDER, lander)
    _set_velocity(scratch, lane, LEFT, left)
    _set_velocity(scratch, lane, RIGHT, right)


@kernel
def clear_slots(scratch: Scratch, lane: int) -> None:
    """Leave no slot of a lane in use."""
    for body in range(BODIES):
        for k in range(scratch.counts[lane, body]):
            scratch.slots[body, k, POINTS + lane] = ZERO
        scratch.counts[lane, body] = 0


@kernel
def _warm_start(world: World, scratch: Scratch, lane: int, body: int, v: Motion) -> Motion:
    """Set up the body's slots and apply their last impulses."""
    for k in range(scratch.counts[lane, body]):
        i, slot = scratch.rows[lane, body, k], scratch.slots[body, k]
        prepare_slot(world, i, slot, lane, pose_of(world, body), frame_at(scratch, lane, body), True)
        v = warm_start_slot(slot, lane, body, v)
    return v


@inline_kernel
def _velocity(velocities: NDArray[np.float32], lane: int, body: int) -> Motion:
    v = body * 3 * LANES + lane
    return Motion(velocities[v], velocities[v + LANES], velocities[v + 2 * LANES])


@inline_kernel
def _set_velocity(scratch: Scratch, lane: int, body: int, motion: Motion) -> None:
    v = body * 3 * LANES + lane
    scratch.velocities[v], scratch.velocities[v + LANES], scratch.velocities[v + 2 * LANES] = motion


@kernel
def sweep_islands(scratch: Scratch, n: int) -> None:
    """Sweep 180 times over all velocity constraints of lanes 0 to n - 1 (n a multiple of 16)."""
    velocities, hinges = scratch.velocities, scratch.hinges
    deepest = (_deepest(scratch, LANDER, n), _deepest(scratch, LEFT, n), _deepest(scratch, RIGHT, n))
    # Literal numbers of hinges and bodies: loops are vectorised only over addresses known to the compiler.
    for _ in range(VELOCITY_ITERATIONS):
        for lane in range(n):
            sweep_hinge(velocities, hinges, lane, 1)
        for lane in range(n):
            sweep_hinge(velocities, hinges, lane, 0)
        for k in range(deepest[0]):
            _sweep_slots(scratch, 0, k, n)
        for k in range(deepest[1]):
            _sweep_slots(scratch, 1, k, n)
        for k in range(deepest[2]):
            _sweep_slots(scratch, 2, k, n)


@inline_kernel
def _deepest(scratch: Scratch, body: int, n: int) -> int:
    """Return how many slots of a body some lane uses."""
    most = 0
    for lane in range(n):
        most = max(most, scratch.counts[lane, body])
    return most


@inline_kernel
def _sweep_slots(scratch: Scratch, body: int, k: int, n: int) -> None:
    """Sweep slot k of a body in every lane that uses it."""
    velocities, slot = scratch.velocities, scratch.slots[body, k]
    for lane in range(n):
        v = _velocity(velocities, lane, body)
        u = sweep_slot(slot, lane, body, v)
        used = slot[lane + POINTS] > ZERO
        at = body * 3 * LANES + lane
        velocities[at] = u.x if used else v.x
        velocities[at + LANES] = u.y if used else v.y
        velocities[at + 2 * LANES] = u.w if used else v.w


@kernel
def finish_island(world: World, scratch: Scratch, lane: int) -> None:
    """Take velocities and impulses from the sweeps, move the bodies, pull the constraints together."""
    for leg in range(2):
        h = leg * hg.HINGE + lane
        p = world.hinges[leg]
        p[0], p[1] = scratch.hinges[h + jt.PX], scratch.hinges[h + jt.PY]
        p[2], p[3] = scratch.hinges[h + jt.PZ], scratch.hinges[h + jt.MOTOR]
    for body in range(BODIES):
        for k in range(scratch.counts[lane, body]):
            store_impulses(scratch.slots[body, k], lane, world.manifolds[scratch.rows[lane, body, k]])

    lander, v_lander = integrate(pose_of(world, LANDER), _velocity(scratch.velocities, lane, LANDER), DT)
    left, v_left = integrate(pose_of(world, LEFT), _velocity(scratch.velocities, lane, LEFT), DT)
    right, v_right = integrate(pose_of(world, RIGHT), _velocity(scratch.velocities, lane, RIGHT), DT)
    left_limit, right_limit = scratch.hinges[jt.LIMIT + lane], scratch.hinges[hg.HINGE + jt.LIMIT + lane]
    settled = False
    for _ in range(POSITION_ITERATIONS):
        least_right, right = _settle_contacts(world, scratch, lane, RIGHT, right)
        least_lander, lander = _settle_contacts(world, scratch, lane, LANDER, lander)
        least_left, left = _settle_contacts(world, scratch, lane, LEFT, left)
        right_fine, lander, right = settle_hinge(RIGHT_HINGE, right_limit, lander, right)
        left_fine, lander, left = settle_hinge(LEFT_HINGE, left_limit, lander, left)
        apart = lesser(lesser(least_right, least_lander), least_left) >= SEPARATION_TOLERANCE
        if apart and right_fine and left_fine:
            settled = True
            break
    place(world, scratch, lane, LANDER, lander)
    place(world, scratch, lane, LEFT, left)
    place(world, scratch, lane, RIGHT, right)
    set_motion(world, LANDER, v_lander)
    set_motion(world, LEFT, v_left)
    set_motion(world, RIGHT, v_right)
    _fall_asleep(world, settled)


@kernel
def _settle_contacts(world: World, scratch: Scratch, lane: int, body: int, pose: Pose) -> tuple[F, Pose]:
    least = ZERO
    for k in range(scratch.counts[lane, body]):
        separation, pose = settle_contact(world, scratch.rows[lane, body, k], body, pose, BAUMGARTE)
        least = lesser(least, separation)
    return least, pose


@kernel
def integrate(pose: Pose, v: Motion, h: F) -> tuple[Pose, Motion]:
    """Move for a time h, no further than Box2D allows in one step."""
    dx, dy = h * v.x, h * v.y
    if dx * dx + dy * dy > MAX_TRANSLATION * MAX_TRANSLATION:
        ratio = MAX_TRANSLATION / np.sqrt(dx * dx + dy * dy)
        v = Motion(v.x * ratio, v.y * ratio, v.w)
    turn = h * v.w
    if turn * turn > MAX_ROTATION * MAX_ROTATION:
        v = Motion(v.x, v.y, v.w * (MAX_ROTATION / abs(turn)))
    return Pose(pose.x + h * v.x, pose.y + h * v.y, pose.a + h * v.w), v


@kernel
def _fall_asleep(world: World, settled: bool) -> None:
    """Send all bodies to sleep once each has rested for half a second."""
    shortest = MAX_FLOAT
    for body in range(BODIES):
        v = motion_of(world, body)
        if (
            v.w * v.w > ANGULAR_SLEEP_TOLERANCE * ANGULAR_SLEEP_TOLERANCE
            or v.x * v.x + v.y * v.y > LINEAR_SLEEP_TOLERANCE * LINEAR_SLEEP_TOLERANCE
        ):
            world.bodies[body, SLEEP] = ZERO
            shortest = ZERO
        else:
            world.bodies[body, SLEEP] += DT
            shortest = lesser(shortest, world.bodies[body, SLEEP])
    if shortest >= TIME_TO_SLEEP and settled:
        for body in range(BODIES):
            world.awake[body] = False
            set_motion(world, body, Motion(ZERO, ZERO, ZERO))
            world.bodies[body, SLEEP] = ZERO
