"""Where learning episodes begin and end.

The paper begins each at the task's own initial states and runs it to T. The loss it derives, however, compares
expert and planner from the *same* state: KL(p_E(V | x_t) ‖ p_Q(V | x_t)). Beginning some episodes at a demonstrated
state x_t, at its time t, makes that comparison exact, and shows the cost all of the task from the first update on
instead of the part before the first fall. What is executed from there is the learner's own, as everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rhirl.demos import Demonstrations
from rhirl.learning.config import Config
from rhirl.learning.streams import RESET, START, draw
from rhirl.simulators import InvertibleSimulator, Simulator, State


class Start(NamedTuple):
    """The beginning of one episode, and its end unless the task ends it first."""

    system: State
    t: int
    """Time at which it begins: windows of the same time are compared with it."""
    end: int
    """Time at which it is over."""


class Episodes:
    """All episodes of a run; episode e is a pure function of the run's seed and e."""

    def __init__(self, simulator: Simulator, demos: Demonstrations, config: Config, seed: int) -> None:
        if config.starts > 0 and not isinstance(simulator, InvertibleSimulator):
            raise ValueError(
                f"{type(simulator).__name__} cannot begin at a demonstrated state: it has no "
                "state_from_observation. Give it one, or set starts=0"
            )
        self.simulator = simulator
        self.demos = demos
        self.config = config
        self.seed = seed

    def begin(self, episode: int) -> Start:
        """Begin an episode: at a demonstrated state with probability `starts`, else at an initial one."""
        t, demo = self._place(episode)
        end = min(self.demos.horizon, t + self._steps(episode))
        if demo is None:
            system = self.simulator.reset(draw(self.seed, RESET, episode))
        else:
            assert isinstance(self.simulator, InvertibleSimulator)
            system = self.simulator.state_from_observation(self.demos.observations[demo, t])
        return Start(system, t, end)

    def _steps(self, episode: int) -> int:
        """Return how long an episode may last.

        The first round is cut short by turns, so that the B episodes spread over time. In step with each other they
        would all show the cost the same part of the task at once, then the next.
        """
        steps = self.demos.horizon if self.config.span is None else self.config.span
        return steps if episode >= self.config.parallel else max(1, steps * (episode + 1) // self.config.parallel)

    def _place(self, episode: int) -> tuple[int, int | None]:
        """Draw the time an episode begins at, and the demonstration it begins on, if any."""
        rng = np.random.default_rng(draw(self.seed, START, episode))
        if rng.random() >= self.config.starts:
            return 0, None
        demo = int(rng.integers(len(self.demos)))
        return int(rng.integers(self.demos.lengths[demo])), demo
