"""A policy for a cost that stays as it is: how a learned cost is used where the world has changed."""

from __future__ import annotations

from jax import Array

from rhirl.baselines.imitation import Imitator
from rhirl.baselines.lesson import Lesson
from rhirl.baselines.practice import ImitationConfig, Metrics, stationary
from rhirl.costs import MLP, Cost, Normaliser
from rhirl.rl import Transitions


class Reoptimise(Imitator[ImitationConfig]):
    """SAC, paid −g; assign the cost to `parameters` before the first step."""

    @staticmethod
    def begin(config: ImitationConfig, key: Array, normalise: Normaliser) -> Cost:
        """Draw a cost, in the place of the one that is given."""
        return Cost(normalise, MLP.of(key, len(normalise.mean), config.hidden))

    @staticmethod
    def reward(config: ImitationConfig, parameters: Cost, batch: Transitions) -> Array:
        """Pay −g."""
        return stationary(config, lambda x: -parameters(x), batch)

    @staticmethod
    def teach(config: ImitationConfig, parameters: Cost, lesson: Lesson, key: Array) -> tuple[Cost, Metrics]:
        """Learn nothing."""
        return parameters, {}

    @staticmethod
    def learned(parameters: Cost) -> Cost:
        """Return the cost that was given."""
        return parameters
