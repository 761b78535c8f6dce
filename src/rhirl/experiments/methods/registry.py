"""Every way to learn behind one face: training, resuming, evaluating and reporting need not know which it is.

A new method takes a class with the face of `Learner` and one line in `METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rhirl.baselines import AIRL, FIRL, GAIL
from rhirl.baselines.presets import CONFIGS, presets
from rhirl.demos import Agent, Demonstrations
from rhirl.experiments.methods.learner import Learner
from rhirl.experiments.methods.ours import Planning, load_planner, prepare
from rhirl.experiments.methods.rehearsing import Rehearsing
from rhirl.experiments.methods.rivals import Cloning, Imitating, load_policy, start_reoptimising
from rhirl.experiments.run import RunConfig, RunDirectory
from rhirl.learning import Config
from rhirl.tasks import Task

Start = Callable[[RunDirectory, Task, Demonstrations, Any, RunConfig], Learner]
"""(where it runs, task, demonstrations, configuration, what was asked for) → a learner at its beginning."""

Prepare = Callable[[RunDirectory, Task, Demonstrations, Any, Callable[[str], None]], None]
"""(where it runs, task, demonstrations, configuration, who hears how far it is): files are written there."""


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
    prepare: Prepare | None = None
    """What has to be in the run directory before it starts."""
    needs_controls: bool = False
    """Whether it learns from demonstrated controls too."""
    has_cost: bool = True
    """Whether what it learns is a cost that can be optimised again elsewhere."""


def _baseline(name: str, start: Start, *, needs_controls: bool = False, has_cost: bool = True) -> Method:
    return Method(
        CONFIGS[name],
        lambda task: presets(name, task.name),
        start,
        load_policy,
        needs_controls=needs_controls,
        has_cost=has_cost,
    )


METHODS: dict[str, Method] = {
    "rhirl": Method(Config, lambda task: task.presets, Planning, load_planner, prepare),
    "firl": _baseline("firl", partial(Imitating, FIRL)),
    "airl": _baseline("airl", partial(Imitating, AIRL), needs_controls=True),
    "gail": _baseline("gail", partial(Imitating, GAIL), has_cost=False),
    "bc": _baseline("bc", Cloning, needs_controls=True, has_cost=False),
    "reoptimise": _baseline("reoptimise", start_reoptimising),
    "rehearse": Method(Config, lambda task: task.presets, Rehearsing, load_policy, prepare),
}


def get_method(name: str) -> Method:
    """Find a method by name."""
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
