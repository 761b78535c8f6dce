"""Gymnasium's Pendulum-v1, compiled: the same arithmetic in the same order, so the same bits.

    θ̈ = (3g / 2l) sin θ + (3 / ml²) u,   ω' = clip(ω + θ̈ dt, ±8),   θ' = θ + ω' dt

State: (θ, ω) as float64. Observation: (cos θ, sin θ, ω) as float32. One control in [-1, 1], a torque of ±2 N m.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numba
import numpy as np
from gymnasium.envs.classic_control import PendulumEnv
from numpy.typing import NDArray

from rhirl.simulators.checks import check_controls, check_state
from rhirl.simulators.protocol import Rollout

MAX_TORQUE = np.float32(2.0)
NO_NOISE = np.zeros((0, 0))
MAX_SPEED = 8.0
DT = 0.05


class PendulumSimulator:
    """Pendulum-v1 with `g` as in Gymnasium, and optionally process noise on the velocity.

    Args:
        g: Gravity, as `gymnasium.make("Pendulum-v1", g=…)`.
        process_noise: Standard deviation of Gaussian noise added to ω at every step (rad/s); zero is
            Gymnasium's own, deterministic pendulum.
    """

    observation_shape = (3,)
    control_dim = 1

    def __init__(self, *, g: float = 10.0, process_noise: float = 0.0) -> None:
        self.g = g
        self.process_noise = process_noise

    def reset(self, seed: int) -> NDArray[np.float64]:
        """Draw θ from ±π and ω from ±1, with the same numbers as the environment's own `reset(seed=seed)`."""
        bound = np.array([np.pi, 1.0])
        rng, _ = gymnasium.utils.seeding.np_random(seed)
        return rng.uniform(low=-bound, high=bound)

    def observe(self, state: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return (cos θ, sin θ, ω)."""
        theta, omega = state
        return np.array([np.cos(theta), np.sin(theta), omega], np.float32)

    def step(self, state: NDArray[np.float64], control: NDArray[Any], seed: int = 0) -> NDArray[np.float64]:
        """Advance by dt = 0.05 s."""
        return self._advance(state, control, self._noise(seed, 1, 1))

    def mean_step(self, state: NDArray[np.float64], control: NDArray[Any]) -> NDArray[np.float64]:
        """Advance without process noise."""
        return self._advance(state, control, NO_NOISE)

    def terminated(self, state: NDArray[np.float64]) -> bool:
        """Tell that the pendulum never ends before its time."""
        return False

    def rollout(self, state: NDArray[np.float64], controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Roll out V (M, K, 1) from (θ, ω)."""
        check_state(state, (2,), "pendulum")
        V = check_controls(controls, self.control_dim)
        _, observations = _rollout(state, V, self._noise(seed, *V.shape[:2]), self.g)
        return Rollout(observations, np.asarray(np.isfinite(observations).all(axis=(1, 2))))

    def snapshot(self, env: gymnasium.Env[Any, Any]) -> NDArray[np.float64]:
        """Read (θ, ω) of a running Pendulum-v1."""
        return np.array(_pendulum(env).state, np.float64)

    def restore(self, env: gymnasium.Env[Any, Any], state: NDArray[np.float64]) -> None:
        """Put a running Pendulum-v1 into (θ, ω)."""
        _pendulum(env).state = np.array(state, np.float64)

    def state_from_observation(
        self, observation: NDArray[Any], near: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return (θ, ω) with this observation, θ within ±π; it tells all, so `near` is not asked."""
        cosine, sine, omega = np.asarray(observation, np.float64)
        return np.array([np.arctan2(sine, cosine), omega])

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """Make the environment that is simulated."""
        return gymnasium.make("Pendulum-v1", g=self.g)

    def action(self, controls: NDArray[Any]) -> NDArray[Any]:
        """Scale controls to the environment's torques."""
        return MAX_TORQUE * controls

    def bare_rollout(self, state: NDArray[np.float64], controls: NDArray[Any]) -> Callable[[], object]:
        """Prepare the compiled loop alone, without checks, for benchmarks."""
        V, noise = check_controls(controls, self.control_dim), self._noise(0, *controls.shape[:2])
        return lambda: _rollout(state, V, noise, self.g)

    def _advance(
        self, state: NDArray[np.float64], control: NDArray[Any], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        check_state(state, (2,), "pendulum")
        V = check_controls(np.asarray(control)[None, None], self.control_dim)
        states, _ = _rollout(state, V, noise, self.g)
        return states[0, 1]

    def _noise(self, seed: int, M: int, K: int) -> NDArray[np.float64]:
        if self.process_noise == 0:
            return NO_NOISE
        return self.process_noise * np.random.default_rng(seed).standard_normal((M, K))


@numba.njit(cache=True, nogil=True)
def _rollout(
    state: NDArray[np.float64], V: NDArray[np.float32], noise: NDArray[np.float64], g: float
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Return states (M, K + 1, 2) and observations (M, K + 1, 3); `noise` is (M, K), or empty for none."""
    M, K, _ = V.shape
    states = np.empty((M, K + 1, 2))
    observations = np.empty((M, K + 1, 3), np.float32)
    for j in range(M):
        theta, omega = state[0], state[1]
        for k in range(K + 1):
            if k > 0:
                torque = min(max(MAX_TORQUE * V[j, k - 1, 0], -MAX_TORQUE), MAX_TORQUE)
                # Gymnasium multiplies the float32 torque by 3 in float32 before the sum becomes float64.
                push = np.float64(np.float32(3.0) * torque)
                omega = omega + (3 * g / 2 * np.sin(theta) + push) * DT
                if noise.size:
                    omega += noise[j, k - 1]
                omega = min(max(omega, -MAX_SPEED), MAX_SPEED)
                theta = theta + omega * DT
            states[j, k, 0], states[j, k, 1] = theta, omega
            observations[j, k, 0], observations[j, k, 1], observations[j, k, 2] = (
                np.cos(theta),
                np.sin(theta),
                omega,
            )
    return states, observations


def _pendulum(env: gymnasium.Env[Any, Any]) -> PendulumEnv:
    inner = env.unwrapped
    if not isinstance(inner, PendulumEnv):
        raise TypeError(f"PendulumSimulator reads Pendulum-v1, not {type(inner).__name__}")
    return inner
