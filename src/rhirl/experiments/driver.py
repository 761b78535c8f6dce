"""The expert of CarRacing: MPPI on the environment's own reward, through the compiled car.

    S = −Σ_k r_k  +  c Σ_k off_k  +  c_v Σ_k max(0, v_k − v_max)  −  (1000/N) (η p − κ d)

with the true reward r, the share `off` of wheels on grass, the speed v, and at the end of the horizon the tiles p
passed along the road and the distance d (m) by which the car has left it. The reward alone wins as many points,
but cuts corners over grass, and knows no way back to the road once no new tile is within reach: what is added makes
it a driver worth watching.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.envs.box2d.car_racing import TRACK_WIDTH
from jax import Array
from numpy.typing import NDArray

from rhirl.planning import Planner, sample, smooth, update, weigh
from rhirl.simulators.car import state as s
from rhirl.simulators.car.state import body_origin
from rhirl.simulators.car.track import Track, make_track
from rhirl.simulators.car_racing import CarRacingSimulator, CarState, Drive

ON_ROAD = [s.WHEEL + 4 * wheel + s.ON_ROAD for wheel in range(s.WHEELS)]
STRETCH = np.arange(-15, 46)
"""Tiles around the current one within which a plan may end."""


@dataclass(frozen=True)
class Driving:
    """How the expert plans and what it cares about beside the reward."""

    planner: Planner = field(default_factory=lambda: Planner(K=45, M=64, beta=0.2, ess=0.1, knots=8))
    off_road: float = 0.5
    """c: cost of a step with all wheels on grass."""
    top_speed: float = 70.0
    """v_max (m/s)."""
    speeding: float = 0.1
    """c_v: cost of a step per m/s too fast."""
    progress: float = 0.3
    """η: worth of a tile's length of road, in tiles."""
    way_back: float = 0.1
    """κ: cost of a metre off the road, in tiles."""


class DrivingExpert:
    """Commands steering and pedal from the state of the running environment."""

    def __init__(self, driving: Driving | None = None, *, threads: int | None = None) -> None:
        self.driving = driving or Driving()
        self.simulator = CarRacingSimulator(threads=threads)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Begin an episode at the start of the road, without a plan."""
        self._key = jax.random.key(seed % 2**31)
        self._step, self._near = 0, 0
        self._U = jnp.zeros((self.driving.planner.K, self.simulator.control_dim))

    def act(self, env: gymnasium.Env[Any, Any], observation: NDArray[Any]) -> NDArray[np.float32]:
        """Plan from where the environment is."""
        return self.plan(self.simulator.snapshot(env))

    def plan(self, state: CarState) -> NDArray[np.float32]:
        """Return the control u (2,) to command in a state."""
        track = make_track(int(state.seed))
        self._near = (self._near + int(along(state.car[None], track, self._near)[0][0])) % len(track.tiles)
        V = _propose(self._key, self._step, self._U, self.driving.planner)
        drive = self.simulator.drive(state, np.asarray(V), trail=True)
        S = trajectory_cost(drive, track, self._near, self.driving)
        self._U, u = _improve(self._U, V, jnp.asarray(S, jnp.float32), self.driving.planner)
        self._step += 1
        return np.asarray(u)


def trajectory_cost(drive: Drive, track: Track, near: int, driving: Driving) -> NDArray[np.float64]:
    """Return S (M,) of what M control sequences led to, from near a tile."""
    off = 1.0 - drive.cars[..., ON_ROAD].mean(axis=-1)
    speed = np.hypot(drive.cars[..., s.VX], drive.cars[..., s.VY])
    still_driving = np.concatenate([np.ones((len(off), 1), bool), ~drive.over[:, :-1]], axis=1)
    care = driving.off_road * off + driving.speeding * np.maximum(0.0, speed - driving.top_speed)
    passed, astray = along(drive.cars[:, -1], track, near)
    tiles = driving.progress * passed - driving.way_back * astray
    return -drive.rewards.sum(axis=1) + (care * still_driving).sum(axis=1) - 1000.0 / len(track.tiles) * tiles


def along(cars: NDArray[np.float64], track: Track, near: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return how many tiles beyond tile `near` cars (M, STATE_DIM) are, and how far (m) from the road.

    Only the stretch around that tile is looked at: where two stretches of the road come close, a car does not
    change from one to the other.
    """
    line = track.line[(near + STRETCH) % len(track.line), 2:]
    distance = np.hypot(*np.moveaxis(line - body_origin(cars)[:, None], -1, 0))
    return STRETCH[distance.argmin(axis=1)], np.maximum(0.0, distance.min(axis=1) - TRACK_WIDTH)


@partial(jax.jit, static_argnames="planner")
def _propose(key: Array, step: Array, U: Array, planner: Planner) -> Array:
    return sample(jax.random.fold_in(key, step), U, planner)


@partial(jax.jit, static_argnames="planner")
def _improve(U: Array, V: Array, S: Array, planner: Planner) -> tuple[Array, Array]:
    """Return the plan of the next step, whose end repeats its last control, and the control to command now."""
    U = smooth(update(weigh(S, U, V, planner).w, V, U, S), planner)
    return jnp.concatenate([U[1:], U[-1:]]), U[0]
