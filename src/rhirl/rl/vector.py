"""Several Gymnasium environments stepped together, with an exact idea of how episodes end.

An episode ends because the task is over (terminated: no future) or because time is up (truncated: the future is
merely not watched). Environments are stepped bare, without Gymnasium's own time limit and automatic reset: the
horizon T is counted here, the last observation of an episode is stored before the reset, and every reset is
seeded from (seed, environment, episode). An environment's state is therefore a function of that seed and of the
controls since, which is all a checkpoint has to keep: `restore` resets and repeats them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from rhirl.rl.networks import Actor, act
from rhirl.rl.replay import Transitions

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]


class Rollout(NamedTuple):
    """What a round of steps brought."""

    transitions: Transitions
    """steps x environments of them, step by step."""
    returns: np.ndarray
    """Undiscounted returns of the episodes that ended."""
    lengths: np.ndarray
    """Their lengths."""


def bare(make: MakeEnv) -> gymnasium.Env[Any, Any]:
    """Make an environment without the time limit and checks Gymnasium may have put around it.

    Wrappers of the caller's own stay; only those of `gymnasium.make` are taken off.
    """
    env = make()
    inner = env
    while isinstance(inner, gymnasium.Wrapper):
        if type(inner).__name__ not in ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker"):
            return env
        inner = inner.env
    return inner


class Environments:
    """`count` copies of one environment; controls in [-1, 1] are scaled to the environment's own box."""

    def __init__(self, make: MakeEnv, count: int, horizon: int, seed: int = 0, first: int = 0) -> None:
        self.envs = [bare(make) for _ in range(count)]
        self.horizon, self.seed, self.first = horizon, seed, first
        observations, controls = self.envs[0].observation_space, self.envs[0].action_space
        if not isinstance(observations, gymnasium.spaces.Box) or len(observations.shape) != 1:
            raise TypeError(f"SAC needs vector observations, but this environment's are {observations}")
        if not isinstance(controls, gymnasium.spaces.Box) or len(controls.shape) != 1:
            raise TypeError(f"SAC needs continuous controls in a box, but this environment's are {controls}")
        self.n, self.m = observations.shape[0], controls.shape[0]
        self.middle = (controls.high + controls.low) / 2
        self.half_width = (controls.high - controls.low) / 2
        self.steps = 0
        self.episodes = np.zeros(count, np.int64)
        self.history: list[list[np.ndarray]] = [[] for _ in self.envs]
        self.gained = np.zeros(count)
        self.x = np.stack([self._reset(i) for i in range(count)])

    def _reset(self, i: int) -> np.ndarray:
        self.history[i], self.gained[i] = [], 0.0
        sequence = np.random.SeedSequence([self.seed, self.first + i, int(self.episodes[i])])
        x, _ = self.envs[i].reset(seed=int(sequence.generate_state(1)[0]))
        return np.asarray(x, np.float32)

    def _step(self, i: int, u: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
        x, r, terminated, truncated, _ = self.envs[i].step(self.middle + self.half_width * u)
        self.history[i].append(u)
        self.gained[i] += float(r)
        over = terminated or truncated or len(self.history[i]) >= self.horizon
        return np.asarray(x, np.float32), float(r), bool(terminated), over

    def rollout(self, actor: Actor | None, steps: int) -> Rollout:
        """Step every environment `steps` times under a stochastic actor (NumPy arrays), or uniformly at random."""
        count = len(self.envs)
        rng = np.random.default_rng([self.seed, self.first, self.steps])
        shape = (steps, count, self.m)
        noise = rng.uniform(-1, 1, shape) if actor is None else rng.standard_normal(shape)
        xs = np.empty((steps, count, self.n), np.float32)
        us = noise.astype(np.float32)
        rs = np.empty((steps, count), np.float32)
        ds = np.zeros((steps, count), np.float32)
        nexts = np.empty((steps, count, self.n), np.float32)
        returns, lengths = [], []
        for t in range(steps):
            xs[t] = self.x
            if actor is not None:
                us[t] = act(actor, self.x, us[t])
            for i in range(count):
                nexts[t, i], rs[t, i], terminated, over = self._step(i, us[t, i])
                ds[t, i] = terminated
                self.x[i] = nexts[t, i]
                if over:
                    returns.append(self.gained[i])
                    lengths.append(len(self.history[i]))
                    self.episodes[i] += 1
                    self.x[i] = self._reset(i)
        self.steps += steps
        flat = (a.reshape(steps * count, *a.shape[2:]) for a in (xs, us, rs, ds, nexts))
        return Rollout(Transitions(*flat), np.array(returns), np.array(lengths, np.int64))

    @property
    def ready(self) -> bool:
        """Whether nobody else is at work on the rollout asked for: here, stepping happens in `finish`."""
        return True

    def start(self, actor: Actor | None, steps: int) -> None:
        """Ask for a rollout; the caller may begin other work before `finish`."""
        self._asked = (actor, steps)

    def finish(self) -> Rollout:
        """Return the rollout asked for."""
        return self.rollout(*self._asked)

    def state(self) -> dict[str, np.ndarray]:
        """What `restore` needs to put the environments exactly here."""
        played = [u for history in self.history for u in history]
        return {
            "steps": np.array(self.steps),
            "episodes": self.episodes.copy(),
            "ages": np.array([len(history) for history in self.history]),
            "controls": np.array(played, np.float32).reshape(-1, self.m),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Return to a state: reset every environment with its seed and repeat the controls of its episode."""
        self.steps, self.episodes = int(state["steps"]), state["episodes"].copy()
        episodes = np.split(state["controls"], np.cumsum(state["ages"])[:-1])
        for i, controls in enumerate(episodes):
            self.x[i] = self._reset(i)
            for u in controls:
                self.x[i], *_ = self._step(i, u)

    def close(self) -> None:
        """Release the environments."""
        for env in self.envs:
            env.close()


def evaluate(make: MakeEnv, horizon: int, actor: Actor, episodes: int, seed: int = 0) -> np.ndarray:
    """Undiscounted returns (episodes,) of the deterministic actor; episode i is seeded with seed + i.

    The actor (NumPy arrays) reads the first entries of the observation, as many as it was built for.
    """
    env = bare(make)
    box = env.action_space
    assert isinstance(box, gymnasium.spaces.Box)
    n = actor.body.weights[0].shape[0]
    returns = np.zeros(episodes)
    for episode in range(episodes):
        x, _ = env.reset(seed=seed + episode)
        for _ in range(horizon):
            u = act(actor, np.asarray(x, np.float32)[None, :n])[0]
            x, r, terminated, truncated, _ = env.step((box.high + box.low) / 2 + (box.high - box.low) / 2 * u)
            returns[episode] += float(r)
            if terminated or truncated:
                break
    env.close()
    return returns
