"""Simulators: systems the planner can put into a state and roll out. One file per engine."""

from rhirl.simulators.protocol import EnvironmentSimulator, Rollout, Simulator, State

__all__ = ["EnvironmentSimulator", "Rollout", "Simulator", "State"]
