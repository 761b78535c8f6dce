"""The compiled function that Python calls: drive some cars on one track.

All arrays must be contiguous: for any other kind the compiler would start anew.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gymnasium.envs.box2d.car_racing import PLAYFIELD
from numpy.typing import NDArray

from rhirl.simulators.box2d import joint as jt
from rhirl.simulators.box2d.frames import Motion, Pose, lesser
from rhirl.simulators.box2d.island import integrate
from rhirl.simulators.box2d.settings import (
    ANGULAR_SLEEP_TOLERANCE,
    DT,
    LANES,
    LINEAR_SLEEP_TOLERANCE,
    MAX_FLOAT,
    POSITION_ITERATIONS,
    TIME_TO_SLEEP,
    VELOCITY_ITERATIONS,
    ZERO,
    inline_kernel,
    kernel,
    outer_kernel,
)
from rhirl.simulators.car import hinge as hg
from rhirl.simulators.car import tyres
from rhirl.simulators.car.hinge import (
    any_limited,
    prepare_hinge,
    settle_hinge,
    sweep_free_hinge,
    sweep_hinge,
    warm_start_hinge,
)
from rhirl.simulators.car.overlap import Overlap, make_overlap
from rhirl.simulators.car.road import Road, touch_tiles
from rhirl.simulators.car.scene import MASS_B
from rhirl.simulators.car.state import (
    ANGLE,
    BODIES,
    BODY,
    JOINT,
    NEW_LAP,
    PREVIOUS_REWARD,
    REST,
    REWARD,
    SPIN,
    TIME,
    VISITED_COUNT,
    VX,
    VY,
    WHEELS,
    X,
    Y,
    body_frame,
)

F = np.float32

# Numba's cache only looks at the file of the function it caches. As a default argument the checksum of all sources
# becomes part of the signature, so that an edit anywhere in the physics compiles anew.
_FOLDER = Path(__file__).parent
_FILES = [*sorted(_FOLDER.glob("[!r]*.py")), _FOLDER / "road.py", *sorted((_FOLDER.parent / "box2d").glob("*.py"))]
_SOURCES = zlib.crc32(b"".join(path.read_bytes() for path in _FILES))


class Scratch(NamedTuple):
    """Memory of one thread; the first two tables hold a column of LANES cars after another."""

    velocities: NDArray[np.float32]
    """(15 · LANES,): x, y, ω of each body."""
    hinges: NDArray[np.float32]
    """(4 · HINGE,): see `hinge`."""
    frames: NDArray[np.float32]
    """(5, 4): origin, sine and cosine of each body of one car."""
    overlap: Overlap


@outer_kernel
def simulate(
    states: NDArray[np.float64],
    actions: NDArray[np.float64],
    road: Road,
    rewards: NDArray[np.float64],
    over: NDArray[np.bool_],
    trail: NDArray[np.float64],
    sources: int = _SOURCES,
) -> None:
    """Drive n ≤ LANES cars for K steps, in place.

    states: (n, D); actions: (n, K, 3), Gymnasium's steer, gas and brake; rewards: (n, K) and over: (n, K), filled
    in: the environment's reward and whether the episode ends there; trail: (n, K, D), filled with the state after
    each step unless it has no rows. Cars drive on after the end, as they do in Gymnasium.
    """
    n, K, _ = actions.shape
    scratch = Scratch(
        np.zeros(15 * LANES, np.float32),
        np.zeros(WHEELS * hg.HINGE, np.float32),
        np.zeros((BODIES, 4), np.float32),
        make_overlap(),
    )
    # Vector loops leave no remainder to scalar code if they run over whole groups of lanes.
    lanes = (n + 15) // 16 * 16
    for k in range(K):
        for lane in range(n):
            _prepare(states[lane], actions[lane, k], road, scratch, lane)
        _sweep(scratch, lanes)
        for lane in range(n):
            _finish(states[lane], scratch, lane)
            rewards[lane, k], over[lane, k] = _score(states[lane], len(road.tiles))
            if len(trail) > 0:
                trail[lane, k] = states[lane]


@kernel
def _prepare(
    state: NDArray[np.float64], action: NDArray[np.float64], road: Road, scratch: Scratch, lane: int
) -> None:
    """Apply the controls, touch the road, and set a lane up for its sweeps."""
    velocities, frames = scratch.velocities, scratch.frames
    for body in range(BODIES):
        frame = body_frame(state, body)
        frames[body, 0], frames[body, 1], frames[body, 2], frames[body, 3] = frame
        b, v = BODY * body, body * 3 * LANES + lane
        velocities[v], velocities[v + LANES] = F(state[b + VX]), F(state[b + VY])
        velocities[v + 2 * LANES] = F(state[b + SPIN])
        if body > 0:
            wheel = body - 1
            steer = -action[0] if wheel < 2 else 0.0
            push = tyres.drive_wheel(state, wheel, frame, steer, action[1], action[2])
            velocities[v] += DT * (MASS_B * push.fx)
            velocities[v + LANES] += DT * (MASS_B * push.fy)
            angle = F(state[b + ANGLE]) - F(state[ANGLE])
            old = state[JOINT + 4 * wheel : JOINT + 4 * wheel + 4]
            prepare_hinge(scratch.hinges, lane, wheel, old, frames[0, 2], frames[0, 3], angle, push.motor_speed)
    touch_tiles(state, road, frames, scratch.overlap)
    for wheel in range(WHEELS - 1, -1, -1):
        warm_start_hinge(velocities, scratch.hinges, lane, wheel)


@kernel
def _sweep(scratch: Scratch, lanes: int) -> None:
    """Sweep over all hinges, the last wheel's first."""
    hinges = scratch.hinges
    # Rear wheels never reach a limit in practice, front wheels only while they are steered hard.
    rear = any_limited(hinges, 3, lanes) or any_limited(hinges, 2, lanes)
    front = any_limited(hinges, 1, lanes) or any_limited(hinges, 0, lanes)
    for _ in range(VELOCITY_ITERATIONS):
        # Literal numbers of wheels: loops are vectorised only over addresses known to the compiler.
        _sweep_wheel(scratch, 3, rear, lanes)
        _sweep_wheel(scratch, 2, rear, lanes)
        _sweep_wheel(scratch, 1, front, lanes)
        _sweep_wheel(scratch, 0, front, lanes)


@inline_kernel
def _sweep_wheel(scratch: Scratch, wheel: int, limited: bool, lanes: int) -> None:
    velocities, hinges = scratch.velocities, scratch.hinges
    if limited:
        for lane in range(lanes):
            sweep_hinge(velocities, hinges, lane, wheel)
    else:
        for lane in range(lanes):
            sweep_free_hinge(velocities, hinges, lane, wheel)


@kernel
def _finish(state: NDArray[np.float64], scratch: Scratch, lane: int) -> None:
    """Take velocities and impulses from the sweeps, move the bodies, pull the hinges together."""
    for wheel in range(WHEELS):
        h, old = wheel * hg.HINGE + lane, JOINT + 4 * wheel
        state[old], state[old + 1] = scratch.hinges[h + jt.PX], scratch.hinges[h + jt.PY]
        state[old + 2], state[old + 3] = scratch.hinges[h + jt.PZ], scratch.hinges[h + jt.MOTOR]
    hull = _move(state, scratch, lane, 0)
    w0, w1 = _move(state, scratch, lane, 1), _move(state, scratch, lane, 2)
    w2, w3 = _move(state, scratch, lane, 3), _move(state, scratch, lane, 4)
    limits = scratch.hinges[jt.LIMIT + lane :: hg.HINGE]
    settled = False
    for _ in range(POSITION_ITERATIONS):
        fine3, hull, w3 = settle_hinge(3, limits[3], hull, w3)
        fine2, hull, w2 = settle_hinge(2, limits[2], hull, w2)
        fine1, hull, w1 = settle_hinge(1, limits[1], hull, w1)
        fine0, hull, w0 = settle_hinge(0, limits[0], hull, w0)
        if fine3 and fine2 and fine1 and fine0:
            settled = True
            break
    _place(state, 0, hull)
    _place(state, 1, w0)
    _place(state, 2, w1)
    _place(state, 3, w2)
    _place(state, 4, w3)
    _fall_asleep(state, settled)
    state[TIME] += tyres.DT


@kernel
def _move(state: NDArray[np.float64], scratch: Scratch, lane: int, body: int) -> Pose:
    b, v = BODY * body, body * 3 * LANES + lane
    motion = Motion(scratch.velocities[v], scratch.velocities[v + LANES], scratch.velocities[v + 2 * LANES])
    pose, motion = integrate(Pose(F(state[b + X]), F(state[b + Y]), F(state[b + ANGLE])), motion, DT)
    state[b + VX], state[b + VY], state[b + SPIN] = motion.x, motion.y, motion.w
    return pose


@kernel
def _place(state: NDArray[np.float64], body: int, pose: Pose) -> None:
    b = BODY * body
    state[b + X], state[b + Y], state[b + ANGLE] = pose.x, pose.y, pose.a


@kernel
def _fall_asleep(state: NDArray[np.float64], settled: bool) -> None:
    """Stop all bodies once each has rested for half a second; the tyres wake them in the next step."""
    shortest = MAX_FLOAT
    for body in range(BODIES):
        b = BODY * body
        vx, vy, w = F(state[b + VX]), F(state[b + VY]), F(state[b + SPIN])
        if (
            w * w > ANGULAR_SLEEP_TOLERANCE * ANGULAR_SLEEP_TOLERANCE
            or vx * vx + vy * vy > LINEAR_SLEEP_TOLERANCE * LINEAR_SLEEP_TOLERANCE
        ):
            state[b + REST] = 0.0
            shortest = ZERO
        else:
            state[b + REST] = F(state[b + REST]) + DT
            shortest = lesser(shortest, F(state[b + REST]))
    if shortest >= TIME_TO_SLEEP and settled:
        for body in range(BODIES):
            b = BODY * body
            state[b + VX], state[b + VY], state[b + SPIN], state[b + REST] = 0.0, 0.0, 0.0, 0.0


@kernel
def _score(state: NDArray[np.float64], tiles: int) -> tuple[float, bool]:
    """Return the environment's reward of the step, and whether the episode ends."""
    state[REWARD] -= 0.1
    reward = state[REWARD] - state[PREVIOUS_REWARD]
    state[PREVIOUS_REWARD] = state[REWARD]
    hull = body_frame(state, 0)
    if abs(np.float64(hull.px)) > PLAYFIELD or abs(np.float64(hull.py)) > PLAYFIELD:
        return -100.0, True
    return reward, bool(state[VISITED_COUNT] == tiles or state[NEW_LAP] > 0)
