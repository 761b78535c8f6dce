"""Learn a cost function from state-only, noisy demonstrations by planning with a simulator, and plan with it.

    from rhirl import RHIRL, PendulumSimulator, load_demos

    learner = RHIRL(PendulumSimulator(), load_demos("pendulum")).learn()
    learner.cost(x), learner.act(state), learner.save("cost.safetensors")

Names are imported when they are first used: the worker processes of a simulator import this package too, and
need neither JAX nor MuJoCo.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rhirl.costs import Cost, load_cost
    from rhirl.demos import Demonstrations, load_demos, read_demos
    from rhirl.learning import RHIRL, Config, Controller
    from rhirl.planning import Planner
    from rhirl.simulators.gym import GymSimulator
    from rhirl.simulators.jax import JaxSimulator
    from rhirl.simulators.lunar_lander import LunarLanderSimulator
    from rhirl.simulators.mujoco import MujocoSimulator
    from rhirl.simulators.pendulum import PendulumSimulator

__all__ = [
    "RHIRL",
    "Config",
    "Controller",
    "Cost",
    "Demonstrations",
    "GymSimulator",
    "JaxSimulator",
    "LunarLanderSimulator",
    "MujocoSimulator",
    "PendulumSimulator",
    "Planner",
    "load_cost",
    "load_demos",
    "read_demos",
]

_ROOMS = {
    "rhirl.costs": ("Cost", "load_cost"),
    "rhirl.demos": ("Demonstrations", "load_demos", "read_demos"),
    "rhirl.learning": ("RHIRL", "Config", "Controller"),
    "rhirl.planning": ("Planner",),
    "rhirl.simulators.gym": ("GymSimulator",),
    "rhirl.simulators.jax": ("JaxSimulator",),
    "rhirl.simulators.lunar_lander": ("LunarLanderSimulator",),
    "rhirl.simulators.mujoco": ("MujocoSimulator",),
    "rhirl.simulators.pendulum": ("PendulumSimulator",),
}


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(importlib.import_module(room), name)
    raise AttributeError(f"module 'rhirl' has no attribute {name!r}")
