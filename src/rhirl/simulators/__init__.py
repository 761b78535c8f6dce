"""Simulators: systems the planner can put into a state and roll out. One file per engine."""

from rhirl.simulators.following import follow
from rhirl.simulators.leading import Led, lead
from rhirl.simulators.protocol import (
    ApproximateSimulator,
    EnvironmentSimulator,
    FollowingSimulator,
    InvertibleSimulator,
    LosingSimulator,
    Policy,
    RandomSimulator,
    Rollout,
    Simulator,
    State,
    exactly,
    expected_step,
    where_lost,
)

__all__ = [
    "ApproximateSimulator",
    "EnvironmentSimulator",
    "FollowingSimulator",
    "InvertibleSimulator",
    "Led",
    "LosingSimulator",
    "Policy",
    "RandomSimulator",
    "Rollout",
    "Simulator",
    "State",
    "exactly",
    "expected_step",
    "follow",
    "lead",
    "where_lost",
]
