"""RHIRL at work in a run: it learns a cost, and acts by planning with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from rhirl.atomic import write_atomically
from rhirl.costs import Cost, Network, load_cost, save_cost
from rhirl.demos import Agent, Demonstrations
from rhirl.experiments.agents import PlanningAgent, about
from rhirl.experiments.methods.learner import Line, means
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
from rhirl.proposals import Apprentice, Note, Practice, Rehearsal, Rehearsed, Report, explanation
from rhirl.rl import Actor, Policy
from rhirl.simulators import Simulator, exactly
from rhirl.tasks import Task

WORDS: dict[type[Metrics | Report], dict[str, str]] = {
    Metrics: {"loss": "train/loss", "ess": "mppi/ess", "lam": "mppi/lambda", "spread": "mppi/spread"},
    Report: {"reward": "rehearsal/reward", "lost": "rehearsal/lost"},
}
"""What a line of the log calls what a step reports."""
ENOUGH = 0.1
"""A proposal that loses fewer systems than this share has rehearsed enough: what rehearsing adds is robustness, and
where little is lost it costs more than it brings."""


class GuidedState(NamedTuple):
    """The state of RHIRL and of the apprentice that guides it."""

    learner: LearnerState
    practice: Practice
    rehearsed: Rehearsed | None
    """None if the configuration knows no rehearsals."""

    @property
    def iteration(self) -> NDArray[np.int64]:
        """() control steps taken so far, and rehearsals."""
        return self.learner.iteration + (0 if self.rehearsed is None else self.rehearsed.round)


class Planning:
    """RHIRL: control steps, each with an update of the cost, then rehearsals of the proposal if there is noise."""

    def __init__(
        self, run: RunDirectory, task: Task, demos: Demonstrations, config: Config, asked: RunConfig
    ) -> None:
        self.task, demos, self._system_noise = task, demos.quorate(config.quorum), asked.noise
        # Rehearsals answer to noise: where the system has none, a run is over once the cost is learned.
        self.iterations = config.iterations + (config.rehearsals if asked.noise > 0 else 0)
        self.apprentice: Apprentice | None = None
        self._rehearsed: Rehearsed | None = None
        if config.guided:
            size = config.iterations * config.parallel
            explained = load_explained(run).until(demos.horizon)
            self.apprentice = Apprentice(demos, explained, size, asked.seed, config.clone)
        simulator, config = learns_with(task, config, asked.noise)
        self.rhirl = RHIRL(simulator, demos, config, noise=asked.noise, seed=asked.seed, proposal=self.apprentice)
        if self.apprentice is not None and config.rehearsals:
            self._rehearsed = self._begin_rehearsals(self.apprentice)
        self._danger: tuple[Actor, Network | None, Danger] | None = None

    @property
    def iteration(self) -> int:
        """Control steps so far, and rehearsals."""
        return int(self.state.iteration)

    @property
    def finished(self) -> bool:
        """Whether all control steps were taken, and where there is noise as many rehearsals as are needed."""
        return self._has_learned and (not self._rehearses or self.iteration >= self.iterations)

    @property
    def _has_learned(self) -> bool:
        return bool(self.rhirl.state.iteration >= self.rhirl.config.iterations)

    @property
    def _rehearses(self) -> bool:
        if self._rehearsed is None or self.apprentice is None or self.apprentice.quiet:
            return False
        return not self._rehearsed.settled

    @property
    def executed(self) -> int:
        """Steps executed on the system so far."""
        return int(self.rhirl.state.executed)

    @property
    def state(self) -> LearnerState | GuidedState:
        """Everything RHIRL knows, and its apprentice."""
        learner = self.rhirl.state
        return learner if self.apprentice is None else GuidedState(learner, self.apprentice.state, self._rehearsed)

    def restore(self, state: LearnerState | GuidedState) -> None:
        """Go on exactly where `state` was taken."""
        if self.apprentice is not None and isinstance(state, GuidedState):
            self.apprentice.restore(state.practice)
            self._rehearsed = state.rehearsed
            state = state.learner
        assert isinstance(state, LearnerState)
        self.rhirl.restore(state)

    def step(self) -> Metrics | Report:
        """Take one control step, or rehearse once: an apprentice watches, is taught and then practises."""
        rhirl, apprentice, every = self.rhirl, self.apprentice, self.rhirl.config.relearn
        if apprentice is None:
            return rhirl.step()
        if self._has_learned:
            return self._rehearse(apprentice)
        if self.iteration == 0:
            apprentice.learn()
        done, x = self.executed, np.stack([rhirl.simulator.observe(system) for system in rhirl.state.systems])
        metrics = rhirl.step()
        apprentice.watch(done, x, rhirl.state.u)
        if every is not None and (self.iteration % every == 0 or self._has_learned):
            apprentice.relearn(self.executed)
        return metrics

    def _noise(self, apprentice: Apprentice) -> NDArray[Any]:
        """Return the noise (m,) to mind: that of the rehearsals or, without any, the demonstrator's.

        His is as a clone found it: who has rehearsed does other things than he.
        """
        if self._rehearsed is None or self._rehearsed.round == 0:
            return apprentice.demonstrated_noise()
        return np.asarray(self._rehearsed.noise)

    def _rehearse(self, apprentice: Apprentice) -> Report:
        assert self._rehearsed is not None
        if self._rehearsed.round == 0:
            self._rehearsed = self._begin_rehearsals(apprentice)
        self._rehearsed, report = self._rehearsal(apprentice).round(self._rehearsed)
        apprentice.adopt(self._rehearsed.actor)
        return report

    def _begin_rehearsals(self, apprentice: Apprentice) -> Rehearsed:
        noise = np.full(self.task.control_dim, self._system_noise)
        return self._rehearsal(apprentice).begin(apprentice.state.actor, noise)

    def _rehearsal(self, apprentice: Apprentice) -> Rehearsal:
        rhirl, pairs = self.rhirl, apprentice.pairs()
        simulator, demos, cost = rhirl.simulator, rhirl.demos, rhirl.learned_cost
        return Rehearsal(simulator, demos, rhirl.config, pairs, cost, rhirl.seed, enough=ENOUGH)

    def line(self, metrics: Sequence[Metrics | Report]) -> Line:
        """Average what the last control steps reported, or the last rehearsals, and count."""
        state, led = self.rhirl.state, 0 if self._rehearsed is None else int(self._rehearsed.led)
        line: Line = {
            "iteration": self.iteration,
            "steps/executed": self.executed,
            "steps/simulated": int(state.simulated) + led,
            "steps/episodes": int(state.episode.max()) + 1,
            "sim/invalid": int(state.invalid),
        }
        for kind, words in WORDS.items():
            mean = means([m._asdict() for m in metrics if isinstance(m, kind)])
            line |= {words[name]: value for name, value in mean.items() if name in words}
        return line

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
                self._noise(apprentice),
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


def learns_with(task: Task, config: Config, noise: float) -> tuple[Simulator, Config]:
    """Return the simulator and the configuration to learn with on a system with this control noise.

    Amid noise they may be those that act there: a cost is right for the planner and the model it was learned with.
    """
    simulator: Simulator = task.simulator()
    if not config.learns_as_it_acts(noise):
        return simulator, config
    return exactly(simulator) if config.exact else simulator, replace(config, planner=config.minding)


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
        explained = explanation(task, demos, note)
        write_atomically(run.explained, save(dict(explained._asdict())))


def load_explained(run: RunDirectory) -> Explained:
    """Read the controls that explain a run's demonstrations."""
    return Explained(**load_file(run.explained))
