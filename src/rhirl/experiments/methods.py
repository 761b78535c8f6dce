"""Every way to learn behind one face: training, resuming, evaluating and reporting need not know which it is.

A new method takes a class with the face of `Learner` and one line in `METHODS`.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import gymnasium
import jax
import numpy as np

from rhirl.baselines import AIRL, BC, FIRL, GAIL, BCConfig, ControlNoise, ImitationConfig, Imitator, Reoptimise
from rhirl.baselines.presets import CONFIGS, presets
from rhirl.costs import load_cost, save_cost
from rhirl.demos import Agent, DemonstrationError, Demonstrations
from rhirl.experiments.agents import PlanningAgent, PolicyAgent
from rhirl.experiments.run import RunConfig, RunDirectory
from rhirl.learning import RHIRL, Config, Controller, Metrics
from rhirl.rl import Policy
from rhirl.tasks import Task, get_task

LONG = 100_000
"""Environment steps from which on they are made in a process of their own."""
Line = dict[str, Any]


class Learner(Protocol):
    """A method at work, as a run drives it."""

    @property
    def iteration(self) -> int:
        """Iterations made so far."""
        ...

    @property
    def iterations(self) -> int:
        """Iterations at which it ends, at the latest."""
        ...

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to do."""
        ...

    @property
    def executed(self) -> int:
        """Steps executed on the system so far."""
        ...

    @property
    def state(self) -> Any:
        """Everything it knows, as one pytree of arrays."""
        ...

    def restore(self, state: Any) -> None:
        """Go on exactly where `state` was taken."""
        ...

    def step(self) -> Any:
        """Make one iteration and return its metrics."""
        ...

    def line(self, metrics: Sequence[Any]) -> Line:
        """Write a line of the log from the metrics of the last iterations."""
        ...

    def agent(self) -> Agent:
        """Make the agent that has been learned so far."""
        ...

    def save(self, run: RunDirectory) -> None:
        """Write what has been learned so far into the run directory."""
        ...

    def close(self) -> None:
        """Release what is held."""
        ...


Start = Callable[[RunDirectory, Task, Demonstrations, Any, RunConfig], Learner]
"""(where it runs, task, demonstrations, configuration, what was asked for) → a learner at its beginning."""


@dataclass(frozen=True)
class Method:
    """A way to learn."""

    config: type[Any]
    """Its hyper-parameters."""
    presets: Callable[[Task], Mapping[str, Mapping[str, Any]]]
    """Its presets for a task, by name."""
    start: Start
    load: Callable[[Task, RunDirectory, Any, int], Agent]
    """(task, run, configuration, seed) → the agent a run has learned."""
    needs_controls: bool = False
    """Whether it learns from demonstrated controls too."""
    has_cost: bool = True
    """Whether what it learns is a cost that can be optimised again elsewhere."""


class Planning:
    """RHIRL."""

    def __init__(
        self, run: RunDirectory, task: Task, demos: Demonstrations, config: Config, asked: RunConfig
    ) -> None:
        self.rhirl = RHIRL(task.simulator(), demos, config, noise=asked.noise, seed=asked.seed)
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
        means = _means([m._asdict() for m in metrics])
        state = self.rhirl.state
        return {
            "iteration": self.iteration,
            "steps/executed": self.executed,
            "steps/simulated": int(state.simulated),
            "steps/episodes": int(state.episode.max()) + 1,
            "sim/invalid": int(state.invalid),
            "train/loss": means["loss"],
            "mppi/ess": means["ess"],
            "mppi/lambda": means["lam"],
            "mppi/spread": means["spread"],
        }

    def agent(self) -> PlanningAgent:
        """Plan with the cost as it is now."""
        rhirl, config = self.rhirl, self.rhirl.config
        cost = rhirl.learned_cost
        controller = Controller(rhirl.simulator, cost, config.acting, M_s=config.M_s, seed=rhirl.seed)
        simulator: Any = rhirl.simulator
        return PlanningAgent(controller, simulator)

    def save(self, run: RunDirectory) -> None:
        """Write the cost."""
        save_cost(self.rhirl.learned_cost, run.cost)

    def close(self) -> None:
        """Nothing to release."""


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
            **{f"train/{name}": value for name, value in _means(metrics).items()},
        }

    def agent(self) -> PolicyAgent:
        """Follow the policy as it is now."""
        return PolicyAgent(self.imitator.policy())

    def save(self, run: RunDirectory) -> None:
        """Write cost and policy."""
        save_cost(self.imitator.learned_cost, run.cost)
        self.imitator.policy(task=self.task.name, env=self.task.env_id).save(run.policy)


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
        means = {f"train/{name}": value for name, value in _means(metrics).items()}
        return {"iteration": self.iteration, "steps/executed": self.executed, **means}

    def agent(self) -> PolicyAgent:
        """Follow the best policy so far."""
        return PolicyAgent(self.bc.policy())

    def save(self, run: RunDirectory) -> None:
        """Write the policy."""
        self.bc.policy(task=self.task.name, env=self.task.env_id).save(run.policy)


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


def _means(metrics: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Average each metric over the iterations that report it."""
    found: dict[str, list[Any]] = {}
    for reported in jax.device_get(list(metrics)):
        for name, value in reported.items():
            found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _reoptimise(
    run: RunDirectory, task: Task, demos: Demonstrations, config: ImitationConfig, asked: RunConfig
) -> Imitating:
    """Begin with the cost that lies in the run directory already."""
    learner = Imitating(Reoptimise, run, task, demos, config, asked)
    learner.imitator.parameters = load_cost(run.cost)
    return learner


def _load_planner(task: Task, run: RunDirectory, config: Config, seed: int) -> Agent:
    simulator = task.simulator()
    controller = Controller(simulator, load_cost(run.cost), config.acting, M_s=config.M_s, seed=seed)
    return PlanningAgent(controller, simulator)


def _load_policy(task: Task, run: RunDirectory, config: Any, seed: int) -> Agent:
    return PolicyAgent(Policy.load(run.policy))


def _baseline(name: str, start: Start, **facts: bool) -> Method:
    return Method(CONFIGS[name], lambda task: presets(name, task.name), start, _load_policy, **facts)


METHODS: dict[str, Method] = {
    "rhirl": Method(Config, lambda task: task.presets, Planning, _load_planner),
    "firl": _baseline("firl", partial(Imitating, FIRL)),
    "airl": _baseline("airl", partial(Imitating, AIRL), needs_controls=True),
    "gail": _baseline("gail", partial(Imitating, GAIL), has_cost=False),
    "bc": _baseline("bc", Cloning, needs_controls=True, has_cost=False),
    "reoptimise": _baseline("reoptimise", _reoptimise),
}


def get_method(name: str) -> Method:
    """Find a method by name."""
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
