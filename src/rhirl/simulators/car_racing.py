"""Gymnasium's CarRacing-v3, compiled: the same physics and rewards to the last bit, frames drawn from a texture.

A state is the seed of the track and the car as one row of numbers (see `car.state`). Rollouts run without the GIL
on the threads this process may use; the result does not depend on their number. Observations are frames as the
environment shows them once its camera has zoomed in, without the score (see `car.render`).

Two controls in [-1, 1]: steering, and one pedal, gas above zero and brake below. Gymnasium's third would let a car
brake and accelerate at once, which nobody does, and a planner would mostly sample just that.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.box2d.car_racing import PLAYFIELD
from numpy.typing import ArrayLike, NDArray

from rhirl.simulators.box2d.settings import LANES
from rhirl.simulators.car.bridge import racing, read_car, write_car
from rhirl.simulators.car.render import View, draw_frames, scene
from rhirl.simulators.car.road import Road
from rhirl.simulators.car.simulate import simulate
from rhirl.simulators.car.state import NEW_LAP, STATE_DIM, VISITED_COUNT, body_origin
from rhirl.simulators.car.track import Track, UndrawnCarRacing, make_track
from rhirl.simulators.checks import check_controls
from rhirl.simulators.protocol import Rollout
from rhirl.simulators.threads import split, usable_cores


class CarState(NamedTuple):
    """A car on its track."""

    seed: NDArray[np.int64]
    """(): the track is that of `reset(seed=seed)`."""
    car: NDArray[np.float64]
    """(STATE_DIM,)"""


class Drive(NamedTuple):
    """What M control sequences of length K led to, without pictures."""

    rewards: NDArray[np.float64]
    """(M, K): the environment's own reward of each step; zero after the end."""
    over: NDArray[np.bool_]
    """(M, K): whether the episode has ended with this step or before."""
    cars: NDArray[np.float64]
    """(M, K, STATE_DIM): where each step led, or (M, 1, STATE_DIM): only the last."""


class CarRacingSimulator:
    """CarRacing-v3 with two controls, steering and pedal, and frames for observations.

    Args:
        view: How frames are drawn; by default Gymnasium's 96 x 96 in colour.
        threads: How many threads roll out; by default the processors this process may use.
    """

    control_dim = 2

    def __init__(self, *, view: View | None = None, threads: int | None = None) -> None:
        self.view = view or View()
        self.threads = usable_cores() if threads is None else threads
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return self.view.shape

    def reset(self, seed: int) -> CarState:
        """Return the state of an environment after `reset(seed=seed)`."""
        return CarState(np.array(seed), make_track(seed).start.copy())

    def replay(self, seed: int, controls: ArrayLike) -> NDArray[np.float64]:
        """Return the cars (t + 1, STATE_DIM) after `reset(seed=seed)` and after each of the controls (t, 2)."""
        start = self.reset(seed)
        V = np.reshape(np.asarray(controls, np.float32), (1, -1, self.control_dim))
        if V.shape[1] == 0:
            return start.car[None]
        return np.concatenate([start.car[None], self.drive(start, V, trail=True).cars[0]])

    def play(self, seed: int, controls: ArrayLike) -> NDArray[np.uint8]:
        """Draw the frames (t + 1, h, w, channels) of an episode, given its seed and controls (t, 2)."""
        return self.draw(seed, self.replay(seed, controls))

    def observe(self, state: CarState) -> NDArray[np.uint8]:
        """Draw the frame (h, w, channels) of a state."""
        car = _checked(state)
        return self.draw(state.seed, car[None])[0]

    def step(self, state: CarState, control: ArrayLike, seed: int = 0) -> CarState:
        """Advance by 0.02 s; nothing about the car is random."""
        V = np.asarray(control, np.float32)[None, None]
        if np.isnan(V).any():
            raise ValueError(f"a control must hold numbers in [-1, 1], not {np.asarray(control)}")
        return CarState(state.seed, self.drive(state, V).cars[0, -1])

    def terminated(self, state: CarState) -> bool:
        """Tell whether the lap is finished or the car has left the field."""
        car = _checked(state)
        finished = car[VISITED_COUNT] == len(make_track(int(state.seed)).tiles) or car[NEW_LAP] > 0
        return bool(finished or np.abs(body_origin(car)).max() > PLAYFIELD)

    def rollout(self, state: CarState, controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Roll out V (M, K, 2) and draw what each step shows; like the environment, cars drive on after the end.

        A control that is not a number lets the car roll and makes the rollout invalid.
        """
        drive = self.drive(state, controls, trail=True)
        M, K, _ = drive.cars.shape
        frames = np.empty((M, K + 1, *self.observation_shape), np.uint8)
        frames[:, 0] = self.observe(state)
        drawn = scene(make_track(int(state.seed)), self.view)
        self._in_parallel(lambda i: draw_frames(drawn, drive.cars[i], frames[i, 1:]), list(range(M)))
        return Rollout(frames, ~np.isnan(controls).any(axis=(1, 2)))

    def drive(self, state: CarState, controls: NDArray[Any], *, trail: bool = False) -> Drive:
        """Roll out V (M, K, 2) without drawing; `trail` keeps the car after every step, not only after the last."""
        V = check_controls(np.clip(controls, -1.0, 1.0), self.control_dim)
        car, track = _checked(state), make_track(int(state.seed))
        M, K, _ = V.shape
        actions = self.action(np.nan_to_num(V)).astype(np.float64)
        cars = np.repeat(car[None], M, axis=0)
        rewards, over = np.empty((M, K)), np.empty((M, K), np.bool_)
        path = np.empty((M, K, STATE_DIM) if trail else (0, K, STATE_DIM))
        road = Road(track.tiles, track.cells, track.members)

        def roll(lanes: slice) -> None:
            simulate(cars[lanes], actions[lanes], road, rewards[lanes], over[lanes], path[lanes])

        self._in_parallel(roll, split(M, self.threads, LANES))
        over = np.logical_or.accumulate(over, axis=1)
        rewards[:, 1:][over[:, :-1]] = 0.0
        return Drive(rewards, over, path if trail else cars[:, None])

    def draw(self, seed: int | NDArray[np.int64], cars: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Draw the frames (N, h, w, channels) of cars (N, STATE_DIM) on the track of a seed."""
        frames = np.empty((len(cars), *self.observation_shape), np.uint8)
        drawn = scene(make_track(int(seed)), self.view)
        self._in_parallel(
            lambda part: draw_frames(drawn, cars[part], frames[part]), split(len(cars), self.threads, LANES)
        )
        return frames

    def snapshot(self, env: gymnasium.Env[Any, Any]) -> CarState:
        """Read the exact state of a running environment, without touching it."""
        return CarState(np.array(_seed_of(env)), read_car(env))

    def restore(self, env: gymnasium.Env[Any, Any], state: CarState) -> None:
        """Put a running environment into a state, as far as Box2D's public interface allows.

        Poses, velocities, tyres and scores are set; the hinges' impulses cannot be and are approached by trial
        steps. For an environment in exactly this state, replay its seed and controls instead.
        """
        car, inner = _checked(state), racing(env)
        if inner.np_random_seed != int(state.seed) or not _same_track(inner, make_track(int(state.seed))):
            inner.reset(seed=int(state.seed))
        write_car(inner, car)

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """Make the environment that is simulated."""
        return TwoControls(gymnasium.make("CarRacing-v3", max_episode_steps=-1))

    @staticmethod
    def action(controls: NDArray[Any]) -> NDArray[np.float32]:
        """Return controls (…, 2) as Gymnasium's steer, gas and brake (…, 3)."""
        return _pedals(np.asarray(controls, np.float32))

    def bare_rollout(self, state: CarState, controls: NDArray[Any]) -> Callable[[], object]:
        """Prepare the same steps with Gymnasium's physics and Box2D, without drawing, on one thread."""
        env = UndrawnCarRacing()
        env.reset(seed=int(state.seed))
        write_car(env, _checked(state))
        plans = self.action(np.clip(controls, -1.0, 1.0))

        def run() -> None:
            for actions in plans:
                for action in actions:
                    env.step(action)

        return run

    def _in_parallel(self, work: Callable[[Any], None], parts: list[Any]) -> None:
        if self.threads == 1 or len(parts) < 2:
            for part in parts:
                work(part)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(work, parts))


class TwoControls(gymnasium.ActionWrapper[Any, Any, Any]):
    """CarRacing driven by steering and one pedal in [-1, 1]."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def action(self, action: NDArray[Any]) -> NDArray[np.float32]:
        """Return steer, gas and brake."""
        return _pedals(np.asarray(action, np.float32))


def _pedals(controls: NDArray[np.float32]) -> NDArray[np.float32]:
    steer, pedal = np.clip(controls[..., 0], -1.0, 1.0), np.clip(controls[..., 1], -1.0, 1.0)
    return np.stack([steer, np.maximum(pedal, np.float32(0)), np.maximum(-pedal, np.float32(0))], axis=-1)


def _seed_of(env: gymnasium.Env[Any, Any]) -> int:
    """Return the seed of an environment's track."""
    inner = racing(env)
    seed = inner.np_random_seed
    if seed is None or seed < 0 or not _same_track(inner, make_track(seed)):
        raise ValueError("only a track that came from reset(seed=…) can be found again: reset with a seed")
    return int(seed)


def _same_track(inner: Any, track: Track) -> bool:
    return np.array_equal(np.array(inner.track), track.line)


def _checked(state: Any) -> NDArray[np.float64]:
    """Return the car of a state; refuse what compiled code could not run on safely."""
    if not isinstance(state, CarState) or np.shape(state.car) != (STATE_DIM,):
        raise ValueError(
            f"a car state is a CarState with a seed and a car ({STATE_DIM},): is this one of another task?"
        )
    if not np.isfinite(state.car).all():
        raise ValueError("this car state holds numbers that are not finite: take a new snapshot")
    return np.ascontiguousarray(state.car, np.float64)
