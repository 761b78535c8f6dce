"""Simulators: systems the planner can put into a state and roll out. One file per engine."""

from rhirl.simulators.protocol import EnvironmentSimulator, InvertibleSimulator, Rollout, Simulator, State

__all__ = ["EnvironmentSimulator", "InvertibleSimulator", "Rollout", "Simulator", "State"]
