"""Pendulum: swing a torque-limited pendulum up and hold it there."""

from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.tasks.task import Task, paper_returns

PENDULUM = Task(
    name="pendulum",
    env_id="Pendulum-v1",
    T=100,
    observation_dim=3,
    control_dim=1,
    simulator=PendulumSimulator,
    offset=600.0,
    expert={
        "steps": 20_000,
        "hidden": (64, 64),
        "learning_rate": 1e-3,
        "envs": 8,
        "round_steps": 16,
        "random_steps": 1_000,
        "capacity": 200_000,
    },
    presets={
        "default": {
            "planner": {"K": 20, "M": 100, "beta": 0.5, "lam": 0.1, "knots": 8},
            "deploy": {"K": 20, "M": 1000, "beta": 0.5, "lam": 0.1, "knots": 8},
            "hidden": (32, 32),
            "parallel": 16,
            "lr": 3e-4,
            "decay": True,
            "average": 0.995,
            "iterations": 2_000,
        },
        "paper": {
            "planner": {
                "K": 20,
                "M": 50,
                "beta": 0.8,
                "alpha": 0.5,
                "lam": 0.1,
                "control_term": 1.0,
                "nominal": False,
            },
            "parallel": 1,
            "average": 0.0,
            "hidden": (32, 32),
            "lr": 1e-4,
            "weight_decay": 8e-5,
            "iterations": 10_000,
        },
    },
    paper=paper_returns(
        expert=(-154.69, -156.50, -168.54),
        rhirl=(-125.95, -122.33, -132.39),
        firl=(-121.94, -127.51, -197.36),
        airl=(-131.64, -184.62, -203.12),
        gail=(-207.05, -207.14, -253.85),
    ),
)
