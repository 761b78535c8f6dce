"""RHIRL at work in a run: it learns a cost, and acts by planning with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rhirl.costs import Cost, load_cost, save_cost
from rhirl.demos import Agent, Demonstrations
from rhirl.experiments.agents import PlanningAgent
from rhirl.experiments.learner import Line, means
from rhirl.experiments.run import RunConfig, RunDirectory
from rhirl.learning import RHIRL, Config, Controller, Metrics, Proposal
from rhirl.rl import Policy
from rhirl.tasks import Task


class Planning:
    """RHIRL."""

    def __init__(
        self, run: RunDirectory, task: Task, demos: Demonstrations, config: Config, asked: RunConfig
    ) -> None:
        proposal = proposal_of(run, config)
        self.rhirl = RHIRL(task.simulator(), demos, config, noise=asked.noise, seed=asked.seed, proposal=proposal)
        self.iterations = config.iterations
        self.restore, self.step = self.rhirl.restore, self.rhirl.step

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
    def state(self) -> Any:
        """Everything RHIRL knows."""
        return self.rhirl.state

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
        return planning_agent(rhirl.simulator, rhirl.learned_cost, rhirl.config, rhirl.seed, rhirl.proposal)

    def save(self, run: RunDirectory) -> None:
        """Write the cost."""
        save_cost(self.rhirl.learned_cost, run.cost)

    def close(self) -> None:
        """Nothing to release."""


def load_planner(task: Task, run: RunDirectory, config: Config, seed: int) -> Agent:
    """Plan with the cost a run has learned."""
    return planning_agent(task.simulator(), load_cost(run.cost), config, seed, proposal_of(run, config))


def planning_agent(
    simulator: Any, cost: Cost, config: Config, seed: int, proposal: Proposal | None
) -> PlanningAgent:
    """Act in the environment by planning with a cost."""
    controller = Controller(simulator, cost, config.acting, M_s=config.M_s, seed=seed, proposal=proposal)
    return PlanningAgent(controller, simulator)


def proposal_of(run: RunDirectory, config: Config) -> Proposal | None:
    """Load the policy that guides a run's samples, if its planners ask for one."""
    return Policy.load(run.policy).act if config.guided else None
