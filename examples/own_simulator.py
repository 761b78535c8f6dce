"""Bring your own simulator: a puck on ice with two thrusters, steered home by planning through it.

    python examples/own_simulator.py

`Puck` is an ordinary Gymnasium environment; `GymSimulator(Puck)` is all it takes to plan with it. `FastPuck` is the
same system written for the planner directly: any class with these methods will do, and this one rolls all of its
M sequences out at once.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from rhirl.simulators.gym import GymSimulator
from rhirl.simulators.protocol import Rollout, Simulator


class Puck(gymnasium.Env[Any, Any]):
    """x = (position, velocity); the task ends in failure when the puck leaves the ice."""

    observation_space = Box(-np.inf, np.inf, (4,), np.float32)
    action_space = Box(-1, 1, (2,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Put the puck somewhere on the ice, at rest."""
        super().reset(seed=seed)
        self.x = np.concatenate([self.np_random.uniform(-1, 1, 2), np.zeros(2)])
        return self.x.astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Push the puck for a tenth of a second."""
        velocity = 0.98 * self.x[2:] + 0.1 * action
        self.x = np.concatenate([self.x[:2] + 0.1 * velocity, velocity])
        return self.x.astype(np.float32), 0.0, bool(np.abs(self.x[:2]).max() > 2), False, {}


class FastPuck:
    """The same puck without Gymnasium; its state is x (4,) in float64."""

    observation_shape = (4,)
    control_dim = 2

    def reset(self, seed: int) -> NDArray[Any]:
        """Put the puck somewhere on the ice, at rest."""
        return np.concatenate([np.random.default_rng(seed).uniform(-1, 1, 2), np.zeros(2)])

    def observe(self, state: NDArray[Any]) -> NDArray[Any]:
        """Show position and velocity."""
        return state.astype(np.float32)

    def step(self, state: NDArray[Any], control: NDArray[Any], seed: int = 0) -> NDArray[Any]:
        """Push the puck, or many pucks (M, 4), for a tenth of a second."""
        velocity = 0.98 * state[..., 2:] + 0.1 * np.clip(control, -1, 1).astype(np.float32)
        return np.concatenate([state[..., :2] + 0.1 * velocity, velocity], axis=-1)

    def terminated(self, state: NDArray[Any]) -> bool:
        """Tell whether the puck has left the ice."""
        return bool(np.abs(state[:2]).max() > 2)

    def rollout(self, state: NDArray[Any], controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Push M pucks through their K controls together."""
        states = [np.tile(state, (len(controls), 1))]
        for k in range(controls.shape[1]):
            states.append(self.step(states[-1], controls[:, k]))
        return Rollout(np.stack(states, axis=1).astype(np.float32), np.ones(len(controls), bool))


def plan(simulator: Simulator, state: Any, seed: int) -> NDArray[Any]:
    """Return the first control of the best of 64 random pushes held for ten steps: close to home, and slow."""
    pushes = np.random.default_rng(seed).uniform(-1, 1, (64, 1, 2))
    observations, valid, _ = simulator.rollout(state, np.repeat(pushes, 10, axis=1))
    cost = (observations[:, 1:] ** 2).sum(axis=(1, 2))
    return pushes[np.where(valid, cost, np.inf).argmin(), 0]


def main() -> float:
    """Steer the puck home and return how far from home it ends."""
    env = Puck()
    env.reset(seed=0)
    with GymSimulator(Puck) as simulator:
        print(f"{simulator.workers} worker processes, exact: {simulator.exact}")
        for t in range(60):
            control = plan(simulator, simulator.snapshot(env), seed=t)
            observation, *_ = env.step(simulator.to_action(control))
    distance = float(np.linalg.norm(observation[:2]))
    print(f"distance from home after 60 steps: {distance:.3f}")
    return distance


if __name__ == "__main__":
    main()
