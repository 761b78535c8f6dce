"""Agents that act in the plain environment: a planner with its cost, an expert, a random one."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.demos import Agent
from rhirl.learning import Controller
from rhirl.rl import Policy
from rhirl.simulators import EnvironmentSimulator
from rhirl.tasks import Task


class PlanningAgent:
    """Plans with a cost from the state of the running environment; controls hold as long as the simulator's do."""

    def __init__(self, controller: Controller, simulator: EnvironmentSimulator) -> None:
        self.controller = controller
        self.simulator = simulator
        self.hold: int = getattr(simulator, "hold", 1)

    def reset(self, seed: int) -> None:
        """Begin with an empty plan."""
        self.controller.reset(seed % 2**31)
        self._steps = 0

    def act(self, env: gymnasium.Env[Any, Any], observation: NDArray[Any]) -> NDArray[np.float32]:
        """Plan from where the environment is, or hold the last control."""
        if self._steps % self.hold == 0:
            self._u = self.controller.act(self.simulator.snapshot(env))
        self._steps += 1
        return self._u


class PolicyAgent:
    """Follows a trained policy, deterministically."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def reset(self, seed: int) -> None:
        """Nothing to forget."""

    def act(self, env: gymnasium.Env[Any, Any], observation: NDArray[Any]) -> NDArray[np.float32]:
        """Ask the policy."""
        return np.asarray(self.policy.act(observation), np.float32)


class RandomAgent:
    """Draws every control uniformly from the box."""

    def __init__(self, control_dim: int) -> None:
        self.control_dim = control_dim
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Begin a new sequence of draws."""
        self._rng = np.random.default_rng([seed, 1])

    def act(self, env: gymnasium.Env[Any, Any], observation: NDArray[Any]) -> NDArray[np.float32]:
        """Ignore everything."""
        return self._rng.uniform(-1, 1, self.control_dim).astype(np.float32)


def about(task: Task) -> dict[str, str]:
    """Say in a policy's file what it was learned for, under one key: several would be written in random order."""
    return {"rhirl": json.dumps({"task": task.name, "env": task.env_id})}


def expert_path(task: Task, noise: float = 0.0) -> Path:
    """Return where the task's bundled expert lies: the one trained inside this noise, or the plain one."""
    folder, name = Path(str(files("rhirl.tasks"))) / "experts", task.expert_of or task.name
    inside = folder / f"{name}-noise{noise:g}.policy.safetensors"
    return inside if inside.exists() else folder / f"{name}.policy.safetensors"


def expert_agent(task: Task, noise: float = 0.0) -> Agent:
    """Bring the expert who demonstrates a task, as the task declares."""
    return DEMONSTRATORS[task.demonstrator](task, noise)


def _policy(task: Task, noise: float) -> Agent:
    path = expert_path(task, noise)
    if not path.exists():
        raise FileNotFoundError(f"no expert of {task.name} is bundled; train one with: rhirl expert {task.name}")
    return PolicyAgent(Policy.load(path))


def _driver(task: Task, noise: float) -> Agent:
    from rhirl.experiments.driver import DrivingExpert  # needs Box2D

    return DrivingExpert()


DEMONSTRATORS: dict[str, Callable[[Task, float], Agent]] = {"policy": _policy, "driver": _driver}
