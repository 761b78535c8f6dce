"""CarRacing as a planner sees it: a control holds for a few steps, and only the frames between are drawn.

A step of CarRacing lasts 0.02 s, in which a car does next to nothing: fifteen of them, as published, look 0.3 s
ahead. Holding each control for `hold` steps lets as many frames look `hold` times as far, and an episode needs
`hold` times fewer plans. The steps in between are simulated as exactly as ever.

A simulator that has played a recording also finds the state behind each of its frames again, so that learning can
begin there; from the pixels alone it could not.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rhirl.simulators.car.render import View
from rhirl.simulators.car_racing import CarRacingSimulator, CarState
from rhirl.simulators.protocol import Rollout


class HeldCarRacingSimulator(CarRacingSimulator):
    """CarRacing in steps of `hold` times 0.02 s.

    Args:
        hold: Steps of the environment that a control lasts.
        view: How frames are drawn.
        threads: How many threads roll out; by default the processors this process may use.
    """

    def __init__(self, *, hold: int = 4, view: View | None = None, threads: int | None = None) -> None:
        if hold < 1:
            raise ValueError(f"hold must be at least 1, not {hold}")
        super().__init__(view=view, threads=threads)
        self.hold = hold
        self._played: dict[bytes, tuple[int, NDArray[np.float64]]] = {}

    def step(self, state: CarState, control: ArrayLike, seed: int = 0) -> CarState:
        """Hold a control (2,)."""
        V = np.asarray(control, np.float32)[None, None].repeat(self.hold, axis=1)
        if np.isnan(V).any():
            raise ValueError(f"a control must hold numbers in [-1, 1], not {np.asarray(control)}")
        return CarState(state.seed, self.drive(state, V).cars[0, -1])

    def rollout(self, state: CarState, controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Roll out V (M, K, 2), each control held, and draw where each has led."""
        trail = self.drive(state, np.repeat(controls, self.hold, axis=1), trail=True).cars
        cars = trail[:, self.hold - 1 :: self.hold]
        M, K, _ = cars.shape
        frames = np.empty((M, K + 1, *self.observation_shape), np.uint8)
        frames[:, 0] = self.observe(state)
        frames[:, 1:] = self.draw(state.seed, cars.reshape(M * K, -1)).reshape(M, K, *self.observation_shape)
        return Rollout(frames, ~np.isnan(controls).any(axis=(1, 2)))

    def play(self, seed: int, controls: ArrayLike) -> NDArray[np.uint8]:
        """Draw every `hold`-th frame of an episode with controls (t, 2) for each step of the environment."""
        cars = self.replay(seed, controls)[:: self.hold]
        frames = self.draw(seed, cars)
        for frame, car in zip(frames, cars, strict=True):
            self._played[_name(frame)] = seed, car
        return frames

    def state_from_observation(self, observation: ArrayLike, near: CarState | None = None) -> CarState:
        """Return the state behind a frame that was played, all of it, so that `near` is not asked."""
        found = self._played.get(_name(np.asarray(observation)))
        if found is None:
            raise ValueError("only a frame that this simulator has played can be traced back to its state")
        return CarState(np.array(found[0]), found[1].copy())


def _name(frame: NDArray[Any]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(frame).tobytes()).digest()
