"""Two wrappers around any Gymnasium environment: one that disturbs the controls, one that pays a learned cost.

    env = LearnedReward(gymnasium.make("Hopper-v5"), load_cost("cost.safetensors"))

pays −g(x) instead of the environment's reward, to whatever learns from Gymnasium environments.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.costs import Cost
from rhirl.demos import disturbed

Env = gymnasium.Env[Any, Any]
Wrapper = gymnasium.Wrapper[Any, Any, Any, Any]


class ControlNoise(Wrapper):
    """Executes v ~ N(u, σ²I), clipped to the box, where u is commanded; in units in which the box is [-1, 1].

    What is drawn follows from the seed of the reset, so an episode can be repeated.
    """

    def __init__(self, env: Env, noise: float) -> None:
        super().__init__(env)
        self.noise = noise
        box = env.action_space
        if not isinstance(box, gymnasium.spaces.Box):
            raise TypeError(f"control noise needs a Box action space, not {box}")
        self._middle, self._half = (box.high + box.low) / 2, (box.high - box.low) / 2
        self._rng = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        if seed is not None:
            self._rng = np.random.default_rng([seed, 2])
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Disturb, then step."""
        u = np.asarray((action - self._middle) / self._half, np.float32)
        return self.env.step(self._middle + self._half * disturbed(u, self.noise, self._rng))


class LearnedReward(Wrapper):
    """Pays −g(x) of the state x a step leads to; the environment's own reward goes to `info["own_reward"]`.

    g is evaluated in NumPy: one state at a time, a compiled function would spend its time being called.
    """

    def __init__(self, env: Env, cost: Cost) -> None:
        super().__init__(env)
        n, shape = len(cost.normalise.mean), env.observation_space.shape
        if shape != (n,):
            raise ValueError(f"the cost was learned on {n} observations, this environment's have shape {shape}")
        self._mean, self._deviation, self._limit = (np.asarray(a) for a in vars(cost.normalise).values())
        self._weights = [np.asarray(weight) for weight in cost.network.weights]
        self._biases = [np.asarray(bias) for bias in cost.network.biases]

    def cost(self, x: NDArray[Any]) -> float:
        """Return g(x) of one observation (n,)."""
        z = np.clip((np.asarray(x, np.float32) - self._mean) / self._deviation, -self._limit, self._limit)
        for weight, bias in zip(self._weights[:-1], self._biases, strict=True):
            z = np.maximum(z @ weight + bias, 0.0)
        return float((z @ self._weights[-1])[0])

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and pay for where it led."""
        x, reward, terminated, truncated, info = self.env.step(action)
        return x, -self.cost(x), terminated, truncated, {**info, "own_reward": float(reward)}
