"""The rivals at work in a run: they learn policies, some of them beside a cost, in the task's own environment."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium

from rhirl.baselines import BC, BCConfig, ControlNoise, ImitationConfig, Imitator, Reoptimise
from rhirl.costs import load_cost, save_cost
from rhirl.demos import Agent, DemonstrationError, Demonstrations
from rhirl.experiments.agents import PolicyAgent, about
from rhirl.experiments.methods.learner import Line, means
from rhirl.experiments.run import RunConfig, RunDirectory
from rhirl.rl import Policy
from rhirl.tasks import Task, get_task

LONG = 100_000
"""Environment steps from which on they are made in a process of their own."""


class Imitating:
    """f-IRL, AIRL or GAIL; they learn a policy beside a cost."""

    def __init__(
        self,
        kind: type[Imitator[Any]],
        run: RunDirectory,
        task: Task,
        demos: Demonstrations,
        config: ImitationConfig,
        asked: RunConfig,
    ) -> None:
        refuse_images(demos)
        make = partial(make_system, task.name, asked.noise)
        # The result is the same; a process costs a few seconds to start and lets stepping and learning overlap.
        processes = int(config.steps >= LONG)
        self.imitator = kind(make, demos, config, seed=asked.seed, processes=processes)
        self.task, self.iterations = task, config.iterations
        self.restore, self.step, self.close = self.imitator.restore, self.imitator.step, self.imitator.close

    @property
    def iteration(self) -> int:
        """Iterations so far."""
        return self.imitator.iteration

    @property
    def finished(self) -> bool:
        """Whether all steps were made."""
        return self.iteration >= self.iterations

    @property
    def executed(self) -> int:
        """Environment steps so far."""
        return self.imitator.steps

    @property
    def state(self) -> Any:
        """Everything the method knows."""
        return self.imitator.state

    def line(self, metrics: Sequence[Mapping[str, Any]]) -> Line:
        """Average what the last iterations reported, and count."""
        imitator = self.imitator
        return {
            "iteration": self.iteration,
            "steps/executed": self.executed,
            "steps/updates": int(imitator.learner.updates),
            "steps/episodes": int(imitator.episodes.total),
            **{f"train/{name}": value for name, value in means(metrics).items()},
        }

    def agent(self) -> PolicyAgent:
        """Follow the policy as it is now."""
        return PolicyAgent(self.imitator.policy())

    def save(self, run: RunDirectory) -> None:
        """Write cost and policy."""
        save_cost(self.imitator.learned_cost, run.cost)
        self.imitator.policy(**about(self.task)).save(run.policy)


class Cloning:
    """Behaviour cloning; it learns a policy only."""

    def __init__(
        self, run: RunDirectory, task: Task, demos: Demonstrations, config: BCConfig, asked: RunConfig
    ) -> None:
        refuse_images(demos)
        self.bc = BC(demos, config, seed=asked.seed)
        self.executed = 0
        self.task, self.iterations = task, config.iterations
        self.restore, self.step, self.close = self.bc.restore, self.bc.step, self.bc.close

    @property
    def iteration(self) -> int:
        """Epochs so far."""
        return self.bc.iteration

    @property
    def finished(self) -> bool:
        """Whether epochs or patience are over."""
        return self.bc.finished

    @property
    def state(self) -> Any:
        """Everything behaviour cloning knows."""
        return self.bc.state

    def line(self, metrics: Sequence[Mapping[str, Any]]) -> Line:
        """Average over the last epochs; the environment was never stepped."""
        mean = {f"train/{name}": value for name, value in means(metrics).items()}
        return {"iteration": self.iteration, "steps/executed": self.executed, **mean}

    def agent(self) -> PolicyAgent:
        """Follow the best policy so far."""
        return PolicyAgent(self.bc.policy())

    def save(self, run: RunDirectory) -> None:
        """Write the policy."""
        self.bc.policy(**about(self.task)).save(run.policy)


def refuse_images(demos: Demonstrations) -> None:
    """Raise where demonstrations are no vectors: policies of the rivals read nothing else."""
    if len(demos.observation_shape) != 1:
        raise DemonstrationError(f"demonstrations of {demos.meta.task} are images, from which only rhirl learns")


def make_system(task: str, noise: float) -> gymnasium.Env[Any, Any]:
    """Make the environment a policy learns in: the task's own, with control noise σ."""
    if multiprocessing.parent_process() is not None:
        # A request to stop may reach every process of a run; it is for the one that knows how to stop.
        for request in (signal.SIGINT, signal.SIGTERM):
            signal.signal(request, signal.SIG_IGN)
    env = get_task(task).make_env(disable_env_checker=True).unwrapped
    return ControlNoise(env, noise) if noise else env


def start_reoptimising(
    run: RunDirectory, task: Task, demos: Demonstrations, config: ImitationConfig, asked: RunConfig
) -> Imitating:
    """Begin with the cost that lies in the run directory already."""
    learner = Imitating(Reoptimise, run, task, demos, config, asked)
    learner.imitator.parameters = load_cost(run.cost)
    return learner


def load_policy(task: Task, run: RunDirectory, config: Any, seed: int) -> Agent:
    """Follow the policy a run has learned."""
    return PolicyAgent(Policy.load(run.policy))
