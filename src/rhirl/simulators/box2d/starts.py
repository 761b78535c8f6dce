"""Where each body was at the start of the step, or of the part of it that remains after an impact."""

from __future__ import annotations

import numpy as np

from rhirl.simulators.box2d.frames import Frame, Pose, between, frame_of
from rhirl.simulators.box2d.settings import ONE, ZERO, inline_kernel, kernel
from rhirl.simulators.box2d.state import Scratch, World, frame_at, pose_of

F = np.float32
CLOCK = 7


@kernel
def begin_step(world: World, scratch: Scratch, lane: int, body: int) -> None:
    """Start the step where the body is now."""
    _set_start(scratch, lane, body, pose_of(world, body), frame_at(scratch, lane, body))
    scratch.starts[lane, body, CLOCK] = ZERO


@kernel
def restart(scratch: Scratch, lane: int, body: int, pose: Pose) -> None:
    """Start the rest of the step at a pose."""
    _set_start(scratch, lane, body, pose, frame_of(pose, body))


@kernel
def advance_start(world: World, scratch: Scratch, lane: int, body: int, fraction: F) -> None:
    """Move the start towards the end of the step, to `fraction` of the step."""
    clock = scratch.starts[lane, body, CLOCK]
    beta = (fraction - clock) / (ONE - clock)
    restart(scratch, lane, body, between(start_pose(scratch, lane, body), pose_of(world, body), beta))
    scratch.starts[lane, body, CLOCK] = fraction


@inline_kernel
def start_pose(scratch: Scratch, lane: int, body: int) -> Pose:
    """Return the pose at the start."""
    start = scratch.starts[lane, body]
    return Pose(start[0], start[1], start[2])


@inline_kernel
def start_frame(scratch: Scratch, lane: int, body: int) -> Frame:
    """Return the frame at the start."""
    start = scratch.starts[lane, body]
    return Frame(start[3], start[4], start[5], start[6])


@inline_kernel
def _set_start(scratch: Scratch, lane: int, body: int, pose: Pose, frame: Frame) -> None:
    start = scratch.starts[lane, body]
    start[0], start[1], start[2] = pose.x, pose.y, pose.a
    start[3], start[4], start[5], start[6] = frame.px, frame.py, frame.s, frame.c
