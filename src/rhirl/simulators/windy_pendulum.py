"""Pendulum-v1 with process noise as a Gymnasium environment: gusts of wind that no control can foresee.

    ω' = clip(ω + θ̈ dt + w, ±8),   w ~ N(0, σ_w²),   θ' = θ + ω' dt

The same law as `PendulumSimulator(process_noise=σ_w)`; rewards are Pendulum's own.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import PendulumEnv

ENV_ID = "rhirl/WindyPendulum-v0"


class WindyPendulum(PendulumEnv):
    """Pendulum in the wind.

    Args:
        process_noise: Standard deviation σ_w of what is added to ω at every step (rad/s).
        kwargs: As for Pendulum-v1.
    """

    def __init__(self, process_noise: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.process_noise = process_noise

    def step(self, u: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Blow, then step: θ̈ depends on θ and u only, so it is all the same whether ω is pushed before or after."""
        theta, omega = self.state
        pushed = omega + self.process_noise * self.np_random.standard_normal()
        self.state = np.array([theta, pushed])
        observation, reward, terminated, truncated, info = super().step(u)
        # Pendulum charges for the velocity a step starts with, which was not yet blown about.
        return observation, reward + 0.1 * (pushed**2 - omega**2), terminated, truncated, info


gymnasium.register(ENV_ID, entry_point=WindyPendulum)
