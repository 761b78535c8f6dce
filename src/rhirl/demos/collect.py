"""Act in the plain Gymnasium environment: how demonstrations are collected and how everything is scored.

One rule for demonstrations, learners and evaluation alike: an episode ends where the environment terminates (a
fall, a landing) or after T steps, whichever comes first.

Control noise is Gaussian on the commanded control in [-1, 1] units, and what leaves the box is clipped:
v = clip(u + ε), ε ~ N(0, σ²I). The paper's "Σ = 0.2" and "Σ = 0.5" are read as the standard deviation σ, because
that reading, and not the variance, reproduces how much its experts lose (docs/demonstrations.md has the numbers).
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.demos.demonstrations import Demonstrations, Metadata, from_episodes

Env = gymnasium.Env[Any, Any]


class Agent(Protocol):
    """Whoever acts: anything that looks at the environment and commands a control."""

    def reset(self, seed: int) -> None:
        """Begin an episode; everything random afterwards follows from the seed."""
        ...

    def act(self, env: Env, observation: NDArray[Any]) -> NDArray[np.float32]:
        """Return the commanded control u (m,) in [-1, 1]."""
        ...


class Episode(NamedTuple):
    """One finished episode of L steps."""

    observations: NDArray[Any]
    """(L + 1, *n)"""
    controls: NDArray[np.float32]
    """(L, m) executed controls v."""
    total: float
    """Sum of the environment's own rewards."""


def run_episode(env: Env, agent: Agent, *, horizon: int, noise: float, seed: int) -> Episode:
    """Let an agent act from `reset(seed)` until termination or for `horizon` steps, whichever comes first."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    agent.reset(seed)
    observations, controls, total = [observation], [], 0.0
    for _ in range(horizon):
        v = disturbed(agent.act(env, observation), noise, rng)
        observation, reward, terminated, _, _ = env.step(to_action(env, v))
        observations.append(observation)
        controls.append(v)
        total += float(reward)
        if terminated:
            break
    return Episode(_stack(observations), np.stack(controls), total)


def disturbed(u: NDArray[np.float32], noise: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """v ~ N(u, σ²I), clipped to the control box: what a system executes when u is commanded."""
    if noise == 0:
        return u
    return np.clip(u + np.float32(noise) * rng.standard_normal(u.shape, np.float32), -1.0, 1.0)


def to_action(env: Env, v: NDArray[np.float32]) -> NDArray[Any]:
    """Scale a control from [-1, 1] to the environment's action box."""
    box = env.action_space
    if not isinstance(box, gymnasium.spaces.Box):
        raise TypeError(f"controls need a Box action space, not {box}")
    middle, half = (box.high + box.low) / 2, (box.high - box.low) / 2
    return np.asarray(middle + half * v, box.dtype)


def collect(
    env: Env,
    agent: Agent,
    *,
    task: str,
    source: str,
    horizon: int,
    noise: float,
    seeds: Sequence[int],
    packages: Sequence[str] = ("gymnasium",),
    progress: Callable[[int, float], None] | None = None,
) -> Demonstrations:
    """Collect one demonstration per seed. `packages` are those whose versions decide what the states are."""
    episodes = []
    for i, seed in enumerate(seeds):
        episodes.append(run_episode(env, agent, horizon=horizon, noise=noise, seed=seed))
        if progress is not None:
            progress(i, episodes[-1].total)
    meta = Metadata(
        task=task,
        env_id=env.spec.id if env.spec is not None else type(env.unwrapped).__name__,
        noise=noise,
        returns=tuple(episode.total for episode in episodes),
        seeds=tuple(int(seed) for seed in seeds),
        source=source,
        versions={package: importlib.metadata.version(package) for package in packages},
    )
    return from_episodes(
        [episode.observations for episode in episodes],
        meta,
        horizon=horizon,
        controls=[episode.controls for episode in episodes],
    )


def _stack(observations: list[NDArray[Any]]) -> NDArray[Any]:
    """Stack observations; images stay bytes, everything else becomes float32."""
    x = np.stack(observations)
    return x if x.dtype == np.uint8 else x.astype(np.float32)
