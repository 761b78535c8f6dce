"""The list of contacts: pairs of an edge and a body whose enlarged boxes overlap.

Box2D puts a new contact in front of its list and walks from the front; here the list is stored oldest first and
walked backwards. The order decides in which order impulses are exchanged, so it is part of the state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d import ground as g
from rhirl.simulators.box2d.frames import Frame, greater, lesser, to_world
from rhirl.simulators.box2d.manifold import collide
from rhirl.simulators.box2d.scene import BODIES, EDGES, LANDER, VERTEX_COUNT, VERTICES
from rhirl.simulators.box2d.settings import BOX_LOOKAHEAD, BOX_MARGIN, SKIN, ZERO, kernel
from rhirl.simulators.box2d.state import (
    BODY,
    COUNT,
    EDGE,
    FACE,
    ID0,
    ID1,
    N0,
    N1,
    NX,
    NY,
    PX,
    PY,
    SLEEP,
    T0,
    T1,
    X0,
    X1,
    Y0,
    Y1,
    Scratch,
    World,
    contact_count,
    frame_at,
)

F = np.float32


@kernel
def update_contacts(world: World, ground: NDArray[np.float32], scratch: Scratch, lane: int) -> None:
    """Find the touching points of every contact of an awake body, and drop contacts whose boxes came apart."""
    for i in range(contact_count(world) - 1, -1, -1):
        edge, body = world.contacts[i, EDGE], world.contacts[i, BODY]
        if not world.awake[body]:
            continue
        if boxes_overlap(world, ground, edge, body):
            update_contact(world, ground, i, frame_at(scratch, lane, body))
        else:
            _destroy(world, i)


@kernel
def update_contact(world: World, ground: NDArray[np.float32], i: int, frame: Frame) -> None:
    """Recompute the touching points of contact i; points that persist keep their impulses."""
    row, values = world.contacts[i], world.manifolds[i]
    body = row[BODY]
    old_count, old_id0, old_id1 = row[COUNT], row[ID0], row[ID1]
    old_n0, old_t0, old_n1, old_t1 = values[N0], values[T0], values[N1], values[T1]
    m = collide(ground, row[EDGE], body, frame)
    row[COUNT], row[FACE], row[ID0], row[ID1] = m.points, m.face, m.id0, m.id1
    values[NX], values[NY], values[PX], values[PY] = m.nx, m.ny, m.px, m.py
    values[X0], values[Y0], values[X1], values[Y1] = m.x0, m.y0, m.x1, m.y1
    values[N0], values[T0], values[N1], values[T1] = ZERO, ZERO, ZERO, ZERO
    if m.points > 0:
        if old_count > 0 and old_id0 == m.id0:
            values[N0], values[T0] = old_n0, old_t0
        elif old_count > 1 and old_id1 == m.id0:
            values[N0], values[T0] = old_n1, old_t1
    if m.points > 1:
        if old_count > 0 and old_id0 == m.id1:
            values[N1], values[T1] = old_n0, old_t0
        elif old_count > 1 and old_id1 == m.id1:
            values[N1], values[T1] = old_n1, old_t1
    if m.points > 0 and old_count == 0:
        world.touched[body] = True
        wake(world, body)
    elif m.points == 0 and old_count > 0:
        _lift(world, body)
        wake(world, body)


@kernel
def move_box(world: World, body: int, start: Frame, end: Frame) -> bool:
    """Let the enlarged box of a body follow its sweep from start to end; True if it had to be moved."""
    left, low, right, high = _swept_box(body, start, end)
    box = world.boxes[body]
    if box[0] <= left and box[1] <= low and right <= box[2] and high <= box[3]:
        return False
    left, low, right, high = left - BOX_MARGIN, low - BOX_MARGIN, right + BOX_MARGIN, high + BOX_MARGIN
    dx, dy = BOX_LOOKAHEAD * (end.px - start.px), BOX_LOOKAHEAD * (end.py - start.py)
    if dx < ZERO:
        left += dx
    else:
        right += dx
    if dy < ZERO:
        low += dy
    else:
        high += dy
    box[0], box[1], box[2], box[3] = left, low, right, high
    return True


@kernel
def find_contacts(world: World, ground: NDArray[np.float32], moved: tuple[bool, bool, bool]) -> None:
    """Append contacts for pairs whose boxes overlap since a box has moved, edge by edge."""
    for edge in range(EDGES):
        for body in range(BODIES):
            if moved[body] and boxes_overlap(world, ground, edge, body) and not _has_contact(world, edge, body):
                # An unused row is all zero but for its edge.
                n = contact_count(world)
                world.contacts[n, EDGE], world.contacts[n, BODY] = edge, body
                wake(world, body)


@kernel
def boxes_overlap(world: World, ground: NDArray[np.float32], edge: int, body: int) -> bool:
    """Tell whether the enlarged boxes of an edge and a body overlap."""
    box, edge_box = world.boxes[body], ground[edge]
    return (
        box[0] <= edge_box[g.RIGHT_X]
        and box[1] <= edge_box[g.HIGH_Y]
        and edge_box[g.LEFT_X] <= box[2]
        and edge_box[g.LOW_Y] <= box[3]
    )


@kernel
def wake(world: World, body: int) -> None:
    """Wake a sleeping body; an awake one keeps its sleep timer."""
    if not world.awake[body]:
        world.awake[body] = True
        world.bodies[body, SLEEP] = ZERO


@kernel
def _has_contact(world: World, edge: int, body: int) -> bool:
    for i in range(contact_count(world)):
        if world.contacts[i, EDGE] == edge and world.contacts[i, BODY] == body:
            return True
    return False


@kernel
def _destroy(world: World, i: int) -> None:
    body = world.contacts[i, BODY]
    if world.contacts[i, COUNT] > 0:
        _lift(world, body)
        wake(world, body)
    last = contact_count(world) - 1
    for k in range(i, last):
        for j in range(6):
            world.contacts[k, j] = world.contacts[k + 1, j]
        for j in range(12):
            world.manifolds[k, j] = world.manifolds[k + 1, j]
    for j in range(6):
        world.contacts[last, j] = 0
    for j in range(12):
        world.manifolds[last, j] = ZERO
    world.contacts[last, EDGE] = -1


@kernel
def _lift(world: World, body: int) -> None:
    """Note that a contact ended: Gymnasium then reports the leg as lifted, even if another edge still holds it."""
    if body != LANDER:
        world.touched[body] = False


@kernel
def _swept_box(body: int, start: Frame, end: Frame) -> tuple[F, F, F, F]:
    left, low, right, high = box_of(body, start)
    left2, low2, right2, high2 = box_of(body, end)
    return lesser(left, left2), lesser(low, low2), greater(right, right2), greater(high, high2)


@kernel
def box_of(body: int, frame: Frame) -> tuple[F, F, F, F]:
    """Return the bounding box of a body with its skin."""
    left, low = to_world(frame, VERTICES[body, 0, 0], VERTICES[body, 0, 1])
    right, high = left, low
    for i in range(1, VERTEX_COUNT[body]):
        x, y = to_world(frame, VERTICES[body, i, 0], VERTICES[body, i, 1])
        left, low, right, high = lesser(left, x), lesser(low, y), greater(right, x), greater(high, y)
    return left - SKIN, low - SKIN, right + SKIN, high + SKIN
