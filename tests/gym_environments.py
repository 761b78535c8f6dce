"""Small environments with known habits, for the tests of the Gymnasium simulator and its worker processes."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rhirl.simulators.gym import GymSimulator

Step = tuple[NDArray[Any], float, bool, bool, dict[str, Any]]


def make(task: str) -> GymSimulator:
    """Simulate a registered environment in this process."""
    return GymSimulator(partial(gymnasium.make, task), workers=0)


def controls_for(simulator: GymSimulator, M: int, K: int, seed: int = 0) -> NDArray[Any]:
    """Draw V (M, K, m)."""
    return np.random.default_rng(seed).uniform(-1, 1, (M, K, simulator.control_dim))


class Walk(gymnasium.Env[Any, Any]):
    """A noisy walk with momentum on a line, whose state sits in an object of its own."""

    observation_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space: spaces.Space[Any] = spaces.Box(-2.0, 4.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.body = SimpleNamespace(x=self.np_random.uniform(), v=0.0)
        return self._get_obs(), {}

    def step(self, action: Any) -> Step:
        self.body.v += 0.1 * float(action[0]) + 0.01 * self.noise()
        self.body.x += self.body.v
        return self._get_obs(), 0.0, self.body.x > 30, False, {}

    def noise(self) -> float:
        return self.np_random.normal()

    def _get_obs(self) -> NDArray[Any]:
        return np.array([self.body.x, self.body.v])


class OwnGenerator(Walk):
    """Makes a random generator of its own at each reset, and keeps it in a place of its own."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        self.parts = {"motor": SimpleNamespace(generators=[np.random.Generator(np.random.Philox(seed))])}
        self.body = SimpleNamespace(x=0.0, v=0.0)
        return self._get_obs(), {}

    def noise(self) -> float:
        return self.parts["motor"].generators[0].normal()


class GlobalNoise(Walk):
    def noise(self) -> float:
        return np.random.mtrand.normal()


class Locked(Walk):
    """Keeps what its next step depends on where nobody can read it."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        self.counter = itertools.count()
        return super().reset(seed=seed)

    def noise(self) -> float:
        return next(self.counter)


class SharedCounter(Walk):
    count = 0

    def noise(self) -> float:
        type(self).count += 1
        return self.count


class OwnMethods(Locked):
    """Has methods to read and set the state that its attributes hide."""

    def get_state(self) -> dict[str, Any]:
        now = next(self.counter)
        self.counter = itertools.count(now)
        return {"count": now, "x": self.body.x, "v": self.body.v}

    def set_state(self, state: dict[str, Any]) -> None:
        self.counter = itertools.count(state["count"])
        self.body = SimpleNamespace(x=state["x"], v=state["v"])


class LyingMethods(Walk):
    """Has methods with the right names, but they forget the velocity."""

    def get_state(self) -> float:
        return self.body.x

    def set_state(self, state: float) -> None:
        self.body.x = state


class Exploding(Walk):
    def step(self, action: Any) -> Step:
        self.body.x *= 1e12
        return self._get_obs(), 0.0, False, False, {}


class Mine(Walk):
    """Raises where it must not tread."""

    def noise(self) -> float:
        if self.body.x > 15.0:
            raise ValueError("stepped on a mine")
        return 0.0


class Mortal(Walk):
    """Kills its worker process at its fifth step, unless the file says that this has happened before."""

    def __init__(self, marker: Path, once: bool) -> None:
        self.marker, self.once, self.t = str(marker), once, 0

    def noise(self) -> float:
        self.t += 1
        if self.t == 5 and parent_process() is not None and not (self.once and Path(self.marker).exists()):
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().noise()


class Sleeper(Walk):
    """Leaves a file named after its worker process, another when it moves fast there, and then takes its time."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.leave("alive")

    def leave(self, word: str) -> None:
        if parent_process() is not None:
            (Path(self.folder) / f"{word}-{os.getpid()}").touch()

    def noise(self) -> float:
        if parent_process() is not None and self.body.v > 3.0:
            self.leave("busy")
            time.sleep(600)
        return 0.0


class Witness(Walk):
    """Shows whether JAX is loaded in the process it runs in."""

    def _get_obs(self) -> NDArray[Any]:
        return np.array([self.body.x, float("jax" in sys.modules)])
