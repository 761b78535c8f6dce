"""Continuous collision: bring bodies back to their first impact with the ground and let them go on from there.

After the discrete step the earliest impact of all contacts is found, its body alone is moved there, pushed out,
given new velocities by its contacts with the ground (hinges are ignored) and moved for the rest of the step; then
the next impact is sought.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.contact_solver import POINTS, prepare_slot, settle_contact, sweep_slot
from rhirl.simulators.box2d.contacts import find_contacts, move_box, update_contact
from rhirl.simulators.box2d.frames import frame_of, lesser
from rhirl.simulators.box2d.impact import clearly_apart, time_of_impact
from rhirl.simulators.box2d.island import integrate
from rhirl.simulators.box2d.scene import LANDER, LEFT, RIGHT
from rhirl.simulators.box2d.settings import (
    DT,
    EPSILON,
    LINEAR_SLOP,
    MAX_SUB_STEPS,
    ONE,
    TOI_BAUMGARTE,
    TOI_POSITION_ITERATIONS,
    VELOCITY_ITERATIONS,
    ZERO,
    f32,
    kernel,
)
from rhirl.simulators.box2d.starts import CLOCK, advance_start, restart, start_frame, start_pose
from rhirl.simulators.box2d.state import (
    BODY,
    COUNT,
    EDGE,
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

KNOWN, SUB_STEPS, ASIDE = range(3)
LAST_IMPACT = ONE - f32(10.0) * EPSILON
SEPARATION_TOLERANCE = f32(-1.5) * LINEAR_SLOP


@kernel
def solve_impacts(world: World, ground: NDArray[np.float32], scratch: Scratch, lane: int) -> None:
    """Find and resolve the impacts of this step, earliest first."""
    for i in range(contact_count(world)):
        _forget(scratch, i)
    # The ground has a clock too: a body whose contact is examined is first brought up to the latest impact.
    ground_clock = ZERO
    while True:
        first, impact, ground_clock = _earliest_impact(world, ground, scratch, lane, ground_clock)
        if first < 0 or impact > LAST_IMPACT:
            return
        body = world.contacts[first, BODY]
        start, end = start_pose(scratch, lane, body), pose_of(world, body)
        clock = scratch.starts[lane, body, CLOCK]
        advance_start(world, scratch, lane, body, impact)
        place(world, scratch, lane, body, start_pose(scratch, lane, body))
        _examine(world, ground, scratch, lane, first)
        scratch.flags[first, KNOWN] = 0
        scratch.flags[first, SUB_STEPS] += 1
        if world.contacts[first, COUNT] > 0:
            ground_clock = impact
            _sub_step(world, ground, scratch, lane, first, (ONE - impact) * DT)
        else:
            scratch.flags[first, ASIDE] = 1
            restart(scratch, lane, body, start)
            scratch.starts[lane, body, CLOCK] = clock
            place(world, scratch, lane, body, end)


@kernel
def _earliest_impact(
    world: World, ground: NDArray[np.float32], scratch: Scratch, lane: int, ground_clock: F
) -> tuple[int, F, F]:
    """Return the contact with the earliest impact (-1: none), when it happens, and the ground's clock."""
    first, earliest = -1, ONE
    for i in range(contact_count(world) - 1, -1, -1):
        edge, body = world.contacts[i, EDGE], world.contacts[i, BODY]
        if scratch.flags[i, ASIDE] or scratch.flags[i, SUB_STEPS] > MAX_SUB_STEPS:
            continue
        if not scratch.flags[i, KNOWN]:
            if not world.awake[body]:
                continue
            clock = scratch.starts[lane, body, CLOCK]
            if ground_clock < clock:
                ground_clock = clock
            elif clock < ground_clock:
                advance_start(world, scratch, lane, body, ground_clock)
            start, end = start_pose(scratch, lane, body), pose_of(world, body)
            scratch.impacts[i] = ONE
            if not clearly_apart(
                ground,
                edge,
                body,
                start_frame(scratch, lane, body),
                frame_at(scratch, lane, body),
                end.a - start.a,
            ):
                t = time_of_impact(scratch, ground, edge, body, start, end)
                if t < ONE:
                    scratch.impacts[i] = lesser(ground_clock + (ONE - ground_clock) * t, ONE)
            scratch.flags[i, KNOWN] = 1
        if scratch.impacts[i] < earliest:
            first, earliest = i, scratch.impacts[i]
    return first, earliest, ground_clock


@kernel
def _sub_step(world: World, ground: NDArray[np.float32], scratch: Scratch, lane: int, first: int, h: F) -> None:
    """Let the body at its impact go on for the remaining time h, held only by its contacts with the ground."""
    body = world.contacts[first, BODY]
    rows, slots = scratch.rows[lane, body], scratch.slots[body]
    rows[0] = first
    n = 1
    for i in range(contact_count(world) - 1, -1, -1):
        if i != first and world.contacts[i, BODY] == body:
            _examine(world, ground, scratch, lane, i)
            if world.contacts[i, COUNT] > 0:
                rows[n] = i
                n += 1
    pose, v = pose_of(world, body), motion_of(world, body)
    for _ in range(TOI_POSITION_ITERATIONS):
        least = ZERO
        for k in range(n):
            separation, pose = settle_contact(world, rows[k], body, pose, TOI_BAUMGARTE)
            least = lesser(least, separation)
        if least >= SEPARATION_TOLERANCE:
            break
    restart(scratch, lane, body, pose)
    for k in range(n):
        prepare_slot(world, rows[k], slots[k], lane, pose, frame_of(pose, body), False)
    for _ in range(VELOCITY_ITERATIONS):
        for k in range(n):
            v = sweep_slot(slots[k], lane, body, v)
    for k in range(n):
        slots[k, POINTS + lane] = ZERO
    pose, v = integrate(pose, v, h)
    place(world, scratch, lane, body, pose)
    set_motion(world, body, v)
    for i in range(contact_count(world)):
        if world.contacts[i, BODY] == body:
            scratch.flags[i, KNOWN] = 0
    moved = follow(world, scratch, lane, body)
    n = contact_count(world)
    find_contacts(world, ground, (moved and body == LANDER, moved and body == LEFT, moved and body == RIGHT))
    for i in range(n, contact_count(world)):
        _forget(scratch, i)


@kernel
def _forget(scratch: Scratch, i: int) -> None:
    """Let nothing be known of contact i."""
    scratch.flags[i, KNOWN], scratch.flags[i, SUB_STEPS], scratch.flags[i, ASIDE] = 0, 0, 0


@kernel
def _examine(world: World, ground: NDArray[np.float32], scratch: Scratch, lane: int, i: int) -> None:
    """Recompute the touching points of contact i, which also brings it back from being set aside."""
    update_contact(world, ground, i, frame_at(scratch, lane, world.contacts[i, BODY]))
    scratch.flags[i, ASIDE] = 0


@kernel
def follow(world: World, scratch: Scratch, lane: int, body: int) -> bool:
    """Let the body's box follow the motion since the start of the (sub-)step; True if the box moved."""
    return move_box(world, body, start_frame(scratch, lane, body), frame_at(scratch, lane, body))
