"""The state of the world as plain arrays that hold all the next step depends on, and the memory a step works in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.frames import Frame, Motion, Pose, frame_of
from rhirl.simulators.box2d.scene import BODIES, EDGES, MAX_CONTACTS
from rhirl.simulators.box2d.settings import LANES, inline_kernel, kernel

F = np.float32

# Columns of `World.bodies`, `World.contacts` and `World.manifolds`.
X, Y, ANGLE, VX, VY, SPIN, SLEEP = range(7)
EDGE, BODY, COUNT, FACE, ID0, ID1 = range(6)
NX, NY, PX, PY, X0, Y0, N0, T0, X1, Y1, N1, T1 = range(12)


class World(NamedTuple):
    """Lander, legs, hinges, contacts and ground; the layout of the arrays never changes.

    Bodies are 0 lander, 1 left leg, 2 right leg.
    """

    terrain: NDArray[np.float32]
    """(11, 4): ends x1, y1, x2, y2 of the ground's edges."""
    bodies: NDArray[np.float32]
    """(3, 7): centre of mass x, y, angle, their velocities, and how long the body has been at rest (s)."""
    awake: NDArray[np.bool_]
    """(3,): whether Box2D still moves the body."""
    boxes: NDArray[np.float32]
    """(3, 4): enlarged bounding boxes (left, low, right, high) of the broad phase."""
    hinges: NDArray[np.float32]
    """(2, 4): impulses of the hinges: pin x, y, limit, motor."""
    contacts: NDArray[np.int64]
    """(33, 6): edge (-1 in unused rows), body, touching points, reference face, point ids; oldest first."""
    manifolds: NDArray[np.float32]
    """(33, 12): face normal, face point, then x, y, normal impulse, friction impulse of either point."""
    touched: NDArray[np.bool_]
    """(3,): the lander has crashed; the left, the right leg stands on the ground."""


class Scratch(NamedTuple):
    """Memory of one thread, in which up to 32 worlds ("lanes") advance side by side.

    The first three tables hold a column of 32 lanes after another, ready for vector registers.
    """

    velocities: NDArray[np.float32]
    """(9 · 32,): x, y, ω of each body."""
    hinges: NDArray[np.float32]
    """(2 · 19 · 32,): see `hinge`."""
    slots: NDArray[np.float32]
    """(3, 11, 22 · 32): see `contact_solver`."""
    counts: NDArray[np.int64]
    """(32, 3): touching contacts of each body, that is, slots in use."""
    rows: NDArray[np.int64]
    """(32, 3, 11): the contact behind each slot."""
    frames: NDArray[np.float32]
    """(32, 3, 4): the frame of each body where it is now."""
    starts: NDArray[np.float32]
    """(32, 3, 8): see `starts`."""
    impacts: NDArray[np.float32]
    """(33,): time of impact of each contact."""
    flags: NDArray[np.int64]
    """(33, 3): whether that time is known, sub-steps taken, contact set aside."""
    simplex: NDArray[np.float32]
    """(3, 7): see `distance`."""
    corners: NDArray[np.int64]
    """(3, 4): see `distance`."""


@kernel
def make_scratch() -> Scratch:
    """Allocate the memory of one thread."""
    return Scratch(
        np.zeros(9 * LANES, np.float32),
        np.zeros(2 * 19 * LANES, np.float32),
        np.zeros((BODIES, EDGES, 22 * LANES), np.float32),
        np.zeros((LANES, BODIES), np.int64),
        np.zeros((LANES, BODIES, EDGES), np.int64),
        np.zeros((LANES, BODIES, 4), np.float32),
        np.zeros((LANES, BODIES, 8), np.float32),
        np.zeros(MAX_CONTACTS, np.float32),
        np.zeros((MAX_CONTACTS, 3), np.int64),
        np.zeros((3, 7), np.float32),
        np.zeros((3, 4), np.int64),
    )


def make_worlds(count: int) -> World:
    """Allocate `count` worlds, each array with a leading axis."""
    return World(
        np.zeros((count, EDGES, 4), np.float32),
        np.zeros((count, BODIES, 7), np.float32),
        np.zeros((count, BODIES), np.bool_),
        np.zeros((count, BODIES, 4), np.float32),
        np.zeros((count, 2, 4), np.float32),
        np.zeros((count, MAX_CONTACTS, 6), np.int64),
        np.zeros((count, MAX_CONTACTS, 12), np.float32),
        np.zeros((count, BODIES), np.bool_),
    )


@kernel
def one_of(worlds: World, i: int) -> World:
    """Return world i, sharing its memory."""
    return World(
        worlds.terrain[i],
        worlds.bodies[i],
        worlds.awake[i],
        worlds.boxes[i],
        worlds.hinges[i],
        worlds.contacts[i],
        worlds.manifolds[i],
        worlds.touched[i],
    )


@inline_kernel
def pose_of(world: World, body: int) -> Pose:
    """Return centre of mass and angle."""
    return Pose(world.bodies[body, X], world.bodies[body, Y], world.bodies[body, ANGLE])


@inline_kernel
def motion_of(world: World, body: int) -> Motion:
    """Return the velocities."""
    return Motion(world.bodies[body, VX], world.bodies[body, VY], world.bodies[body, SPIN])


@inline_kernel
def set_motion(world: World, body: int, motion: Motion) -> None:
    """Store the velocities."""
    world.bodies[body, VX], world.bodies[body, VY], world.bodies[body, SPIN] = motion.x, motion.y, motion.w


@kernel
def place(world: World, scratch: Scratch, lane: int, body: int, pose: Pose) -> None:
    """Put a body somewhere."""
    world.bodies[body, X], world.bodies[body, Y], world.bodies[body, ANGLE] = pose.x, pose.y, pose.a
    at, frame = scratch.frames[lane, body], frame_of(pose, body)
    at[0], at[1], at[2], at[3] = frame.px, frame.py, frame.s, frame.c


@inline_kernel
def frame_at(scratch: Scratch, lane: int, body: int) -> Frame:
    """Return the frame of a body."""
    return Frame(
        scratch.frames[lane, body, 0],
        scratch.frames[lane, body, 1],
        scratch.frames[lane, body, 2],
        scratch.frames[lane, body, 3],
    )


@inline_kernel
def contact_count(world: World) -> int:
    """Return how many contacts the list holds."""
    n = 0
    while n < MAX_CONTACTS and world.contacts[n, EDGE] >= 0:
        n += 1
    return n
