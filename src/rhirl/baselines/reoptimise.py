"""A policy for a cost that stays as it is: how a learned cost is used where the world has changed."""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from rhirl.baselines.imitation import ImitationConfig, Imitator, Lesson, Metrics, stationary
from rhirl.costs import Cost, Normaliser, load_cost
from rhirl.rl import Transitions


@dataclass(frozen=True)
class ReoptimiseConfig(ImitationConfig):
    """How a policy is optimised for a given cost; settings of learning a cost have no effect."""

    cost: str = "cost.safetensors"
    """The file that holds the cost."""


class Reoptimise(Imitator[ReoptimiseConfig]):
    """SAC, paid −g."""

    @staticmethod
    def begin(config: ReoptimiseConfig, key: Array, normalise: Normaliser) -> Cost:
        """Read the cost."""
        return load_cost(config.cost)

    @staticmethod
    def reward(config: ReoptimiseConfig, parameters: Cost, batch: Transitions) -> Array:
        """Pay −g."""
        return stationary(config, lambda x: -parameters(x), batch)

    @staticmethod
    def teach(config: ReoptimiseConfig, parameters: Cost, lesson: Lesson, key: Array) -> tuple[Cost, Metrics]:
        """Learn nothing."""
        return parameters, {}

    @staticmethod
    def learned(parameters: Cost) -> Cost:
        """Return the cost that was given."""
        return parameters
