"""RHIRL at work in a run: it learns a cost, and acts by planning with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from rhirl.atomic import write_atomically
from rhirl.costs import Cost, Network, load_cost, save_cost
from rhirl.demos import Agent, Demonstrations
from rhirl.experiments.agents import PlanningAgent, about
from rhirl.experiments.learner import Line, means
from rhirl.experiments.proposal import Apprentice, Note, Practice, explain_demos
from rhirl.experiments.run import RunConfig, RunDirectory
from rhirl.learning import (
    RHIRL,
    Config,
    Controller,
    Danger,
    Explained,
    LearnerState,
    Metrics,
    Proposal,
    learn_danger,
)
from rhirl.rl import Actor, Policy
from rhirl.tasks import Task


class GuidedState(NamedTuple):
    """The state of RHIRL and of the apprentice that guides it."""

    learner: LearnerState
    practice: Practice

    @property
    def iteration(self) -> NDArray[np.int64]:
        """() control steps taken so far."""
        return self.learner.iteration


class Planning:
    """RHIRL."""

    def __init__(
        self, run: RunDirectory, task: Task, demos: Demonstrations, config: Config, asked: RunConfig
    ) -> None:
        self.task = task
        self.iterations = config.iterations
        self.apprentice: Apprentice | None = None
        if config.guided:
            size = config.iterations * config.parallel
            self.apprentice = Apprentice(demos, load_explained(run), size, asked.seed, config.clone)
        self.rhirl = RHIRL(
            task.simulator(), demos, config, noise=asked.noise, seed=asked.seed, proposal=self.apprentice
        )
        self._danger: tuple[Actor, Network | None, Danger] | None = None

    @property
    def iteration(self) -> int:
        """Control steps so far."""
        return int(self.rhirl.state.iteration)

    @property
    def finished(self) -> bool:
        """Whether all control steps were taken."""
        return self.iteration >= self.iterations

    @property
    def executed(self) -> int:
        """Steps executed on the system so far."""
        return int(self.rhirl.state.executed)

    @property
    def state(self) -> LearnerState | GuidedState:
        """Everything RHIRL knows, and its apprentice."""
        learner = self.rhirl.state
        return learner if self.apprentice is None else GuidedState(learner, self.apprentice.state)

    def restore(self, state: LearnerState | GuidedState) -> None:
        """Go on exactly where `state` was taken."""
        if self.apprentice is not None and isinstance(state, GuidedState):
            self.apprentice.restore(state.practice)
            state = state.learner
        assert isinstance(state, LearnerState)
        self.rhirl.restore(state)

    def step(self) -> Metrics:
        """Take one control step; an apprentice watches, and is taught before the first and every so often."""
        rhirl, apprentice, every = self.rhirl, self.apprentice, self.rhirl.config.relearn
        if apprentice is None:
            return rhirl.step()
        if self.iteration == 0:
            apprentice.learn()
        done, x = self.executed, np.stack([rhirl.simulator.observe(system) for system in rhirl.state.systems])
        metrics = rhirl.step()
        apprentice.watch(done, x, rhirl.state.u)
        if every is not None and (self.iteration % every == 0 or self.finished):
            apprentice.relearn(self.executed)
        return metrics

    def line(self, metrics: Sequence[Metrics]) -> Line:
        """Average what the last control steps reported, and count."""
        mean = means([m._asdict() for m in metrics])
        state = self.rhirl.state
        return {
            "iteration": self.iteration,
            "steps/executed": self.executed,
            "steps/simulated": int(state.simulated),
            "steps/episodes": int(state.episode.max()) + 1,
            "sim/invalid": int(state.invalid),
            "train/loss": mean["loss"],
            "mppi/ess": mean["ess"],
            "mppi/lambda": mean["lam"],
            "mppi/spread": mean["spread"],
        }

    def agent(self) -> PlanningAgent:
        """Plan with the cost as it is now."""
        rhirl = self.rhirl
        return planning_agent(
            rhirl.simulator, rhirl.learned_cost, rhirl.config, rhirl.seed, rhirl.proposal, self.danger()
        )

    def danger(self) -> Danger | None:
        """How dangerous states are for the proposal as it is now; None if nobody asks, or nothing is noisy.

        It is learned again when the proposal is another, or the cost that tells who has gone astray.
        """
        rhirl, apprentice = self.rhirl, self.apprentice
        if apprentice is None or apprentice.quiet or not rhirl.config.minds_danger:
            return None
        actor, cost = apprentice.state.actor, rhirl.learned_cost if rhirl.config.astray else None
        network = None if cost is None else cost.network
        if self._danger is None or self._danger[0] is not actor or self._danger[1] is not network:
            danger = learn_danger(
                rhirl.simulator,
                rhirl.demos,
                rhirl.config,
                apprentice,
                apprentice.demonstrated_noise(),
                seed=rhirl.seed,
                cost=cost,
            )
            self._danger = actor, network, danger
        return self._danger[2]

    def save(self, run: RunDirectory) -> None:
        """Write the cost, the proposal if there is one and, in the end, what is dangerous."""
        save_cost(self.rhirl.learned_cost, run.cost)
        if self.apprentice is not None:
            self.apprentice.policy(**about(self.task)).save(run.policy)
        danger = self.danger() if self.finished else None
        if danger is not None:
            danger.save(run.danger)

    def close(self) -> None:
        """Nothing to release."""


def load_planner(task: Task, run: RunDirectory, config: Config, seed: int) -> Agent:
    """Plan with the cost a run has learned."""
    danger = Danger.load(run.danger) if run.danger.exists() else None
    return planning_agent(task.simulator(), load_cost(run.cost), config, seed, proposal_of(run, config), danger)


def planning_agent(
    simulator: Any,
    cost: Cost,
    config: Config,
    seed: int,
    proposal: Proposal | None,
    danger: Danger | None = None,
) -> PlanningAgent:
    """Act in the environment by planning with a cost."""
    controller = Controller.configured(simulator, cost, config, seed=seed, proposal=proposal, danger=danger)
    return PlanningAgent(controller, simulator)


def proposal_of(run: RunDirectory, config: Config) -> Proposal | None:
    """Load the policy that guides a run's samples, if its planners ask for one."""
    return Policy.load(run.policy).act if config.guided else None


def prepare(run: RunDirectory, task: Task, demos: Demonstrations, config: Config, note: Note) -> None:
    """Put what an apprentice starts from into the run directory; a run that goes on keeps its own."""
    if config.guided and not (run.exists() and run.explained.exists()):
        explained = explain_demos(task.simulator(), demos, note)
        write_atomically(run.explained, save(dict(explained._asdict())))


def load_explained(run: RunDirectory) -> Explained:
    """Read the controls that explain a run's demonstrations."""
    return Explained(**load_file(run.explained))
