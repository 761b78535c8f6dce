"""Simulators: systems the planner can put into a state and roll out. One file per engine."""

from rhirl.simulators.protocol import (
    EnvironmentSimulator,
    InvertibleSimulator,
    RandomSimulator,
    Rollout,
    Simulator,
    State,
    expected_step,
)

__all__ = [
    "EnvironmentSimulator",
    "InvertibleSimulator",
    "RandomSimulator",
    "Rollout",
    "Simulator",
    "State",
    "expected_step",
]
