"""A cost of RHIRL's in another world: its proposal rehearses there, by the cost alone, and then acts.

RHIRL plans anew at every step, whatever the noise; but it plans close to a proposal, and one that was cloned from
quiet demonstrations has never been pushed. So under other noise σ the proposal rehearses first (`rhirl.proposals`),
from the demonstrated states the cost was learned from, under Gaussian noise of this σ. What comes of it acts by
itself, as the policies do that rivals optimise anew for their costs. Nothing is demonstrated under the other noise.

The run lies in `reoptimised/noise<σ>` of the run that learned the cost, and takes from there what it begins with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rhirl.costs import load_cost
from rhirl.demos import Demonstrations
from rhirl.experiments.agents import PolicyAgent, about
from rhirl.experiments.methods.learner import Line, means
from rhirl.experiments.methods.ours import WORDS, load_explained
from rhirl.experiments.run import RunConfig, RunDirectory
from rhirl.learning import Config
from rhirl.proposals import Apprentice, Rehearsal, Rehearsed, Report
from rhirl.rl import Policy, to_numpy
from rhirl.tasks import Task


class Rehearsing:
    """Rounds of rehearsals under noise that was not demonstrated."""

    executed = 0
    """Steps on the system: it is simulated only."""

    def __init__(
        self, run: RunDirectory, task: Task, demos: Demonstrations, config: Config, asked: RunConfig
    ) -> None:
        demos = demos.quorate(config.quorum)
        pairs = Apprentice(demos, load_explained(run).until(demos.horizon), 0, asked.seed).pairs()
        self.task, self.iterations = task, config.rehearsals
        self._rehearsal = Rehearsal(task.simulator(), demos, config, pairs, load_cost(run.cost), asked.seed)
        self.state = self._rehearsal.begin(Policy.load(run.policy).actor, np.full(task.control_dim, asked.noise))

    @property
    def iteration(self) -> int:
        """Rounds so far."""
        return int(self.state.round)

    @property
    def finished(self) -> bool:
        """Whether all rounds were made."""
        return self.iteration >= self.iterations

    def restore(self, state: Rehearsed) -> None:
        """Go on exactly where `state` was taken."""
        self.state = state

    def step(self) -> Report:
        """Rehearse once."""
        self.state, report = self._rehearsal.round(self.state)
        return report

    def line(self, metrics: Sequence[Report]) -> Line:
        """Average what the last rounds reported, and count."""
        mean = means([report._asdict() for report in metrics])
        return {
            "iteration": self.iteration,
            "steps/executed": self.executed,
            "steps/simulated": int(self.state.led),
            **{WORDS[Report][name]: value for name, value in mean.items()},
        }

    def policy(self) -> Policy:
        """Return the proposal as it is now."""
        return Policy(to_numpy(self.state.actor), about(self.task))

    def agent(self) -> PolicyAgent:
        """Follow it."""
        return PolicyAgent(self.policy())

    def save(self, run: RunDirectory) -> None:
        """Write it."""
        self.policy().save(run.policy)

    def close(self) -> None:
        """Nothing to release."""
