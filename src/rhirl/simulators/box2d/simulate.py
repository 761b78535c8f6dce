"""The two compiled functions that Python calls: simulate some worlds, observe one.

Both expect every array writable and contiguous: for any other kind the compiler would start anew.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.engines import fire_engines
from rhirl.simulators.box2d.frames import Frame, frame_of
from rhirl.simulators.box2d.ground import make_grounds
from rhirl.simulators.box2d.scene import BODIES, LANDER, SCALE, VIEW_H, VIEW_W
from rhirl.simulators.box2d.settings import kernel, outer_kernel
from rhirl.simulators.box2d.state import (
    ANGLE,
    SPIN,
    VX,
    VY,
    World,
    frame_at,
    make_scratch,
    one_of,
    place,
    pose_of,
)
from rhirl.simulators.box2d.world import step_worlds

FPS = 50.0
PAD_Y = VIEW_H / 4 + 18 / SCALE

# Numba's cache only looks at the file of the function it caches. As a default argument the checksum of all sources
# becomes part of the signature, so that an edit anywhere in this package compiles anew.
_SOURCES = zlib.crc32(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


@outer_kernel
def simulate(
    worlds: World,
    controls: NDArray[np.float32],
    dispersion: NDArray[np.float64],
    gravity: np.float32,
    force: NDArray[np.float32],
    observations: NDArray[np.float32],
    sources: int = _SOURCES,
) -> None:
    """Advance n ≤ 32 worlds by K steps, in place.

    controls and dispersion: (n, K, 2), in [-1, 1]; force: (2,), on the lander during every step; observations:
    (n, K + 1, 8), filled in, the first before any step.
    """
    n, K, _ = controls.shape
    scratch = make_scratch()
    grounds = make_grounds(worlds.terrain)
    for lane in range(n):
        world = one_of(worlds, lane)
        for body in range(BODIES):
            place(world, scratch, lane, body, pose_of(world, body))
        _observe(world, frame_at(scratch, lane, LANDER), observations[lane, 0])
    for k in range(K):
        for lane in range(n):
            main, side = np.float64(controls[lane, k, 0]), np.float64(controls[lane, k, 1])
            noise_0, noise_1 = dispersion[lane, k, 0], dispersion[lane, k, 1]
            fire_engines(one_of(worlds, lane), scratch, lane, main, side, noise_0, noise_1)
        step_worlds(worlds, grounds, scratch, n, gravity, force[0], force[1])
        for lane in range(n):
            _observe(one_of(worlds, lane), frame_at(scratch, lane, LANDER), observations[lane, k + 1])


@outer_kernel
def observe(worlds: World, sources: int = _SOURCES) -> NDArray[np.float64]:
    """Return the observation (8,) of the first world in double precision."""
    world = one_of(worlds, 0)
    observation = np.empty(8)
    _observe(world, frame_of(pose_of(world, LANDER), LANDER), observation)
    return observation


@kernel
def _observe(world: World, frame: Frame, observation: NDArray[Any]) -> None:
    """Fill in position over the pad, velocity, angle, angular velocity and leg contacts in Gymnasium's units."""
    body = world.bodies[LANDER]
    observation[0] = (np.float64(frame.px) - VIEW_W / 2) / (VIEW_W / 2)
    observation[1] = (np.float64(frame.py) - PAD_Y) / (VIEW_H / 2)
    observation[2] = np.float64(body[VX]) * (VIEW_W / 2) / FPS
    observation[3] = np.float64(body[VY]) * (VIEW_H / 2) / FPS
    observation[4] = body[ANGLE]
    observation[5] = 20.0 * np.float64(body[SPIN]) / FPS
    observation[6] = 1.0 if world.touched[1] else 0.0
    observation[7] = 1.0 if world.touched[2] else 0.0
