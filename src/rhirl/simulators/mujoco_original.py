"""The Gymnasium environment that a MuJoCo simulator stands for: made, put into states, stepped and asked.

Two copies are held. One acts; the other never moves, and says what the environment thinks of a state. Neither
remembers anything: every call says from where.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.mujoco_engine import quiet
from rhirl.simulators.mujoco_inverse import invert_observation
from rhirl.simulators.mujoco_observation import ObservationRule, read_rule
from rhirl.simulators.mujoco_state import StateLayout

State = NDArray[np.float64]


class Original:
    """An environment, with the layout of its states and the rule of its observations.

    Args:
        env_id: The environment, as `gymnasium.make` knows it.
        env_kwargs: Keyword arguments of `gymnasium.make`.
    """

    def __init__(self, env_id: str, env_kwargs: Mapping[str, Any]) -> None:
        self.env_id, self.env_kwargs = env_id, dict(env_kwargs)
        self._acting, self._still = self.make(), self.make()
        self._still.do_simulation = lambda *_: None
        self._range = _control_range(self._acting)
        self.model: mujoco.MjModel = self._acting.model
        self.frame_skip = int(self._acting.frame_skip)
        self.entries = int(self._acting.observation_space.shape[0])
        self.rule = read_rule(self.make())
        """How observations are read from a state; None where the environment computes them by itself."""
        self.layout = StateLayout(env_id, self.model, self._acting.data, self.rule.fields if self.rule else ())

    @property
    def control_dim(self) -> int:
        """Number of controls m."""
        return int(self._range.shape[1])

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """Make the environment, with Gymnasium's wrappers."""
        with quiet():
            return gymnasium.make(self.env_id, **self.env_kwargs)

    def make(self) -> Any:
        """Make it without wrappers, at the start of an episode."""
        env: Any = self.make_env().unwrapped
        if not hasattr(env, "model") or not hasattr(env, "do_simulation"):
            raise TypeError(f"{self.env_id} is not a Gymnasium MuJoCo environment: use GymSimulator")
        env.reset(seed=0)
        return env

    def action(self, controls: NDArray[Any]) -> NDArray[Any]:
        """Scale controls in [-1, 1] to what the environment's own `step` takes, and clip what lies outside."""
        centre, half = self._range
        within = np.minimum(np.maximum(controls, -1), 1)  # a third of what np.clip takes for one control
        return centre + half * within.astype(self._range.dtype)

    def reset(self, seed: int) -> State:
        """Draw the initial state that `reset(seed=seed)` draws."""
        self._acting.reset(seed=seed)
        return self.snapshot(self._acting)

    def advance(self, x: State, v: NDArray[Any], forces: NDArray[np.float64] | None) -> State:
        """Execute one control v (m,), while generalised forces (nv,) are applied in place of those of the state."""
        data = self._acting.data
        self.layout.write(self.model, data, x)
        data.warning.number[:] = 0
        if forces is not None:
            data.qfrc_applied[:] = forces
        with quiet():
            self._acting.do_simulation(self.action(v), self.frame_skip)
        data.qfrc_applied[:] = x[self.layout["qfrc_applied"]]
        after = self.layout.read(self.model, data)
        if data.warning.number.any() or not np.isfinite(after).all():
            raise RuntimeError(f"{self.env_id} diverged in one step: MuJoCo met NaN, infinity or a huge number")
        return after

    def observations(self, x: State, actions: NDArray[Any]) -> NDArray[np.float64]:
        """Return what the environment's own `step` shows of actions (K, m) from a state: (K, n)."""
        self.restore(self._acting, x)
        return np.array([self._acting.step(action)[0] for action in actions])

    def observe(self, x: State) -> NDArray[np.float64]:
        """Ask the environment for its observation of a state."""
        self.layout.write(self._still.model, self._still.data, x)
        return np.asarray(self._still._get_obs(), np.float64)

    def terminated(self, x: State) -> bool:
        """Ask whether an episode ends here: `step` is called while the physics stands still."""
        self.layout.write(self._still.model, self._still.data, x)
        return bool(self._still.step(self.action(np.zeros(self.control_dim)))[2])

    def invert(self, rule: ObservationRule, x: NDArray[np.float64], near: State | None) -> State:
        """Return a state that shows x (n,) by a rule, standing at the origin."""
        return invert_observation(self._acting, self.layout, rule, x, near)

    def snapshot(self, env: gymnasium.Env[Any, Any]) -> State:
        """Read the state of a running environment without touching it."""
        inner = self._inner(env)
        return self.layout.read(inner.model, inner.data)

    def restore(self, env: gymnasium.Env[Any, Any], state: State) -> None:
        """Put a running environment into a state, from where its steps repeat, rewards included."""
        inner, x = self._inner(env), self.layout.check(state)
        self.layout.write(inner.model, inner.data, x)
        # What is drawn follows from the state; computing it disturbs the warm start, hence the second write.
        mujoco.mj_forward(inner.model, inner.data)
        self.layout.write(inner.model, inner.data, x)

    def _inner(self, env: gymnasium.Env[Any, Any]) -> Any:
        inner: Any = env.unwrapped
        if getattr(getattr(inner, "model", None), "signature", None) != self.layout.signature:
            raise ValueError(f"this simulator is of {self.env_id}; the environment is {env}")
        return inner


def _control_range(env: Any) -> NDArray[Any]:
    """Return the centre and half the width of the range of every action: (2, m)."""
    low, high = env.action_space.low, env.action_space.high
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(f"the actions of {env} are unbounded: controls in [-1, 1] cannot be scaled to them")
    return np.stack([(low + high) / 2, (high - low) / 2])
