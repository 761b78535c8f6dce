"""Read and write a running CarRacing through the public interface of pybox2d, and one number from beneath it.

Box2D does not tell how long a body has been at rest. That number lies behind three others in the body's memory
that can be set at will, so that a trial body shows where; on a build where it shows nothing, all timers are read as
zero, and a car at rest may fall asleep up to half a second later than the environment's.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import Box2D
import gymnasium
import numpy as np
from gymnasium.envs.box2d.car_racing import CarRacing
from numpy.typing import NDArray

from rhirl.simulators.box2d.settings import DT, POSITION_ITERATIONS, VELOCITY_ITERATIONS
from rhirl.simulators.car import state as s

# A body is at least this long.
BODY_BYTES = 192
TRIAL_STEPS = 3


def racing(env: gymnasium.Env[Any, Any]) -> Any:
    """Return the environment inside its wrappers, if the simulator knows its physics."""
    inner = env.unwrapped
    if not isinstance(inner, CarRacing):
        raise TypeError(f"CarRacingSimulator reads CarRacing-v3, not {type(inner).__name__}")
    if not inner.continuous or inner.domain_randomize or inner.lap_complete_percent != 0.95:
        raise ValueError("CarRacingSimulator needs CarRacing-v3 with its default arguments")
    if inner.car is None:
        raise ValueError("reset the environment before reading or writing its state")
    return inner


def read_car(env: gymnasium.Env[Any, Any]) -> NDArray[np.float64]:
    """Return the state (STATE_DIM,) of an environment's car, without touching it."""
    inner = racing(env)
    state = np.zeros(s.STATE_DIM)
    for i, body in enumerate([inner.car.hull, *inner.car.wheels]):
        v, b = body.linearVelocity, s.BODY * i
        state[b : b + s.BODY] = *body.worldCenter, body.angle, v.x, v.y, body.angularVelocity, _time_at_rest(body)
    for i, wheel in enumerate(inner.car.wheels):
        joint, j, w = wheel.joint, s.JOINT + 4 * i, s.WHEEL + 4 * i
        state[j : j + 4] = *joint.GetReactionForce(1.0), joint.GetReactionTorque(1.0), joint.GetMotorTorque(1.0)
        state[w : w + 4] = wheel.omega, wheel.phase, wheel.gas, bool(wheel.tiles)
    score = inner.t, inner.reward, inner.prev_reward, inner.tile_visited_count, inner.new_lap
    state[s.TIME : s.VISITED] = score
    visited = [tile.road_visited for tile in inner.road]
    painted = [tile.color[0] == inner.road_color[0] for tile in inner.road]
    state[s.VISITED : s.PAINTED] = _words(visited)
    state[s.PAINTED :] = _words(painted)
    return state


def write_car(env: gymnasium.Env[Any, Any], state: NDArray[np.float64]) -> None:
    """Put an environment on the same track into a state; impulses cannot be set and are approached by trial steps.

    The trial steps also make Box2D find the tiles under the wheels.
    """
    inner = racing(env)
    for _ in range(TRIAL_STEPS):
        _write_bodies(inner, state)
        inner.world.Step(float(DT), VELOCITY_ITERATIONS, POSITION_ITERATIONS)
    _write_bodies(inner, state)
    for i, wheel in enumerate(inner.car.wheels):
        wheel.omega, wheel.phase, wheel.gas = state[s.WHEEL + 4 * i : s.WHEEL + 4 * i + 3].tolist()
    inner.t, inner.reward, inner.prev_reward = state[[s.TIME, s.REWARD, s.PREVIOUS_REWARD]].tolist()
    inner.tile_visited_count, inner.new_lap = int(state[s.VISITED_COUNT]), bool(state[s.NEW_LAP])
    visited, painted = _members(state[s.VISITED : s.PAINTED]), _members(state[s.PAINTED :])
    for i, tile in enumerate(inner.road):
        tile.road_visited = visited[i]
        tile.color[:] = inner.road_color + (0 if painted[i] else 0.01 * (i % 3) * 255)


def _write_bodies(inner: Any, state: NDArray[np.float64]) -> None:
    for i, body in enumerate([inner.car.hull, *inner.car.wheels]):
        x, y, angle, vx, vy, spin, _ = state[s.BODY * i : s.BODY * (i + 1)].tolist()
        # Box2D takes the origin and derives the centre of mass: correct the one by the error of the other.
        origin = np.array([x, y], np.float32)
        for _ in range(2):
            body.transform = origin.tolist(), angle
            origin = origin + (np.array([x, y], np.float32) - np.array(body.worldCenter, np.float32))
        body.linearVelocity, body.angularVelocity = (vx, vy), spin
        body.awake = True


def _words(members: list[bool]) -> NDArray[np.float64]:
    """Pack a set of tiles, 32 to a number."""
    bits = np.zeros(s.MAX_TILES, np.uint8)
    bits[: len(members)] = members
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.float64)


def _members(words: NDArray[np.float64]) -> list[bool]:
    """Unpack a set of tiles."""
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    return bits.astype(bool).tolist()


def _time_at_rest(body: Any) -> float:
    offset = _timer_offset()
    return 0.0 if offset is None else _memory(body)[offset]


def _memory(body: Any) -> Any:
    return (ctypes.c_float * (BODY_BYTES // 4)).from_address(int(body.this))


@cache
def _timer_offset() -> int | None:
    """Find which of a body's 4-byte words is its timer, and see that it runs."""
    world = Box2D.b2World((0, 0))
    body = world.CreateDynamicBody(linearDamping=0.125, angularDamping=0.375, gravityScale=0.625)
    words = list(_memory(body))
    known = [0.125, 0.375, 0.625, 0.0]
    found = [i for i in range(3, len(words)) if words[i - 3 : i + 1] == known]
    world.Step(float(DT), 1, 1)
    ran = [i for i in found if _memory(body)[i] == DT]
    return ran[0] if len(ran) == 1 else None
