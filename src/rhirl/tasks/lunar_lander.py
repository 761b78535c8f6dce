"""LunarLander with continuous controls: land between the flags, within 250 steps.

The `paper` preset has the published settings; `default` follows the other tasks' (docs/departures.md).
"""

from rhirl.simulators import EnvironmentSimulator
from rhirl.tasks.task import Task, paper_returns


def _simulator() -> EnvironmentSimulator:
    from rhirl.simulators.lunar_lander import LunarLanderSimulator  # Box2D is an extra, needed by this task only

    return LunarLanderSimulator()


COMMON = {"hidden": (64, 64), "lr": 1e-4, "weight_decay": 8e-5}
PUBLISHED = {"K": 40, "M": 200, "beta": 0.6, "alpha": 0.5, "lam": 0.1, "control_term": 1.0, "nominal": False}
PLANNER = {"K": 30, "beta": 0.3, "guided": 0.8, "knots": 8, "survive": True}
ACTING = {"M": 200, "ess": 0.2, **PLANNER}

LUNAR_LANDER = Task(
    name="lunar_lander",
    env_id="LunarLander-v3",
    env_kwargs={"continuous": True},
    T=250,
    observation_dim=8,
    control_dim=2,
    simulator=_simulator,
    packages=("gymnasium", "Box2D"),
    expert={
        "steps": 500_000,
        "layer_norm": True,
        "envs": 8,
        "round_steps": 8,
        "random_steps": 5_000,
        "capacity": 500_000,
    },
    presets={
        "paper": {"planner": PUBLISHED, "parallel": 1, "average": 0.0, **COMMON, "iterations": 50_000},
        "default": {
            "planner": {"M": 100, "ess": 0.05, **PLANNER},
            "deploy": ACTING,
            "amid_noise": ACTING,
            "rehearsals": 60,
            "beyond": 50,
            "wary": 16.0,
            "parallel": 8,
            "starts": 0.5,
            "absorbing": True,
            "penalty": 1.0,
            **COMMON,
            "lr": 3e-4,
            "decay": True,
            "iterations": 2_000,
        },
    },
    paper=paper_returns(
        expert=(235.13, 222.65, 164.52),
        rhirl=(246.39, 233.73, 198.23),
        firl=(179.03, 141.73, 121.67),
        airl=(174.49, 132.76, 95.61),
        gail=(169.98, 125.5, 100.24),
    ),
)
