"""The policy that guides a planner's samples: a clone of what the simulator says the demonstrator did.

Demonstrations hold states only. Where the simulator can be put into them, it tells which controls lead from each to
the next (`rhirl.learning.explain`); behaviour cloning makes a policy of those. On its own it is as brittle as any
clone of ten demonstrations; among the planner's samples it need only be right now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rhirl.baselines import BC, BCConfig
from rhirl.demos import Demonstrations
from rhirl.experiments.agents import about
from rhirl.experiments.run import RunDirectory
from rhirl.learning import Config, Proposal, explain
from rhirl.rl import Policy
from rhirl.simulators import InvertibleSimulator, Simulator
from rhirl.tasks import Task

TRUSTED = 1e-2
"""Largest residual of a transition the clone learns from: a tenth of a deviation off, all coordinates together."""
PATIENCE = 100
Note = Callable[[str], None]


def learn_proposal(
    simulator: Simulator, demos: Demonstrations, *, seed: int = 0, note: Note = lambda _: None, **metadata: str
) -> Policy:
    """Explain the demonstrated states by controls and clone them; `note` hears how far it is."""
    if not isinstance(simulator, InvertibleSimulator):
        raise ValueError(
            f"{type(simulator).__name__} cannot tell what a demonstrator did: it has no state_from_observation. "
            "Give it one, or set planner.guided=0 and deploy.guided=0"
        )
    note("asking the simulator what the demonstrator did")
    found = explain(simulator, demos, lambda done, of: note(f"{done} of {of} demonstrations explained by controls"))
    trusted = found.residuals < TRUSTED
    note(f"cloning {trusted.sum()} controls")
    clone = BC(replace(demos, controls=found.controls), BCConfig(patience=PATIENCE), seed=seed, trusted=trusted)
    return clone.learn().policy(**metadata)


def untrained_proposal(demos: Demonstrations, task: Task) -> Proposal:
    """Make a proposal that knows nothing, for timing: following it takes as long as following a good one."""
    silent = np.zeros((len(demos), demos.horizon, task.control_dim), np.float32)
    return BC(replace(demos, controls=silent)).policy().act


def prepare_proposal(
    run: RunDirectory, task: Task, demos: Demonstrations, config: Config, seed: int, note: Note
) -> None:
    """Put the proposal a configuration asks for into the run directory; a run that goes on keeps its own."""
    if config.guided and not (run.exists() and run.policy.exists()):
        learn_proposal(task.simulator(), demos, seed=seed, note=note, **about(task)).save(run.policy)
