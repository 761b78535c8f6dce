"""Presets and settings: every shipped one loads, and every mistake is named with the choices there are."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import asdict
from typing import Any

import pytest

from rhirl.experiments.presets import configure, from_dict, to_dict
from rhirl.learning import Config
from rhirl.planning import Planner
from rhirl.tasks import TASKS, Task, get_task

PENDULUM = get_task("pendulum")
EVERY = [(task, preset) for task in TASKS.values() for preset in task.presets]


@pytest.mark.parametrize(("task", "preset"), EVERY, ids=lambda x: x.name if isinstance(x, Task) else x)
def test_every_preset_loads_and_survives_json(task: Task, preset: str) -> None:
    config = configure(task, preset)
    assert isinstance(config, Config)
    assert from_dict(json.loads(json.dumps(to_dict(config)))) == config
    hash(config)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_every_task_has_both_presets_and_says_where_its_demonstrations_come_from(task: Task) -> None:
    assert {"default", "paper"} <= task.presets.keys()
    assert task.T > 0
    assert task.packages


PAPER: dict[str, tuple[int, float, int]] = {
    "pendulum": (20, 0.8, 50),
    "lunar_lander": (40, 0.6, 200),
    "hopper": (20, 0.8, 100),
    "walker2d": (30, 0.6, 150),
    "ant": (15, 1.2, 200),
}


@pytest.mark.parametrize("name", [name for name in PAPER if name in TASKS])
def test_the_paper_preset_has_the_papers_numbers(name: str) -> None:
    config = configure(TASKS[name], "paper")
    planner = config.planner
    assert (planner.K, planner.beta, planner.M) == PAPER[name]
    assert (planner.lam, planner.alpha, planner.control_term) == (0.1, 0.5, 1.0)
    assert planner.ess is None
    assert planner.knots is None
    assert (config.lr, config.weight_decay, config.parallel, config.M_s) == (1e-4, 8e-5, 1, 1)
    assert (config.penalty, config.average, config.deploy) == (0.0, 0.0, None)
    assert config.hidden == ((32, 32) if name == "pendulum" else (64, 64))


def test_overrides_reach_every_level_and_leave_the_preset_alone() -> None:
    before = copy.deepcopy(PENDULUM.presets)
    changes = (
        "lr=0.01",
        "planner.M=7",
        "hidden=(4,)",
        "planner.knots=None",
        "planner.nominal=False",
        "deploy=None",
    )
    changed = configure(PENDULUM, "default", changes)
    assert (changed.lr, changed.planner.M, changed.hidden, changed.planner.knots) == (0.01, 7, (4,), None)
    assert changed.planner.nominal is False
    assert changed.acting is changed.planner
    assert PENDULUM.presets == before
    assert configure(PENDULUM, "default").planner.M != 7


def test_settings_of_the_acting_planners_start_from_the_learning_one() -> None:
    config = configure(PENDULUM, "paper", ["amid_noise.M=400", "deploy.M=300", "planner.beta=0.3"])
    assert config.deploy == Planner(**(asdict(config.planner) | {"M": 300}))
    assert config.amid_noise == Planner(**(asdict(config.planner) | {"M": 400}))
    assert config.amid_noise.beta == 0.3


def test_a_whole_number_may_stand_for_a_float_but_not_the_other_way_round() -> None:
    assert configure(PENDULUM, "default", ["planner.beta=1"]).planner.beta == 1.0
    assert configure(PENDULUM, "default", ["iterations=1e3"]).iterations == 1000
    assert isinstance(configure(PENDULUM, "default", ["iterations=1e3"]).iterations, int)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("colour=red", ["no setting colour", "iterations", "planner", "lr"]),
        ("planner.colour=red", ["no setting planner.colour", "planner.K", "planner.beta"]),
        ("colour.depth=3", ["no setting colour"]),
        ("planner.M.x=3", ["planner.M"]),
        ("lr", ["'lr'", "name=value"]),
        ("lr=fast", ["lr", "'fast'"]),
        ("lr=-1", ["lr must be positive"]),
        ("planner.M=many", ["planner.M", "'many'"]),
        ("planner.M=2.5", ["planner.M", "2.5"]),
        ("planner.K=None", ["planner.K", "None"]),
        ("planner=3", ["planner", "3"]),
        ("hidden=32", ["hidden", "32"]),
        ("hidden=(8,'x')", ["hidden"]),
        ("planner.nominal=7", ["planner.nominal", "7"]),
        ("iterations=True", ["iterations", "True"]),
        ("planner.beta=nan", ["planner.beta", "nan"]),
        ("planner.alpha=2", ["alpha is a probability, not 2"]),
    ],
)
def test_mistakes_in_settings_are_named(override: str, words: list[str]) -> None:
    with pytest.raises(ValueError, match=re.escape(words[0])) as error:
        configure(PENDULUM, "default", [override])
    for word in words:
        assert word in str(error.value)


def test_unknown_presets_and_tasks_are_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="pendulum has no preset 'best'; there are default, paper"):
        configure(PENDULUM, "best")
    with pytest.raises(ValueError, match=r"no task 'pendelum'; there are .*pendulum"):
        get_task("pendelum")


@pytest.mark.parametrize("values", [{"planner": {"K": 0}}, {"colour": 1}, {"planner": {"x": 1}}, {"lr": "1"}])
def test_a_damaged_configuration_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"K|colour|planner\.x|lr"):
        from_dict(values)


def test_ratios_and_scores_of_the_paper() -> None:
    assert PENDULUM.paper_ratio("rhirl", 0.0) == pytest.approx((-125.95 + 600) / (-154.69 + 600))
    assert PENDULUM.paper_ratio("rhirl", 0.3) is None
    assert PENDULUM.paper_ratio("nobody", 0.0) is None
    assert PENDULUM.ratio(-2000.0, -150.0) == 0.0
    assert PENDULUM.ratio(-150.0, -150.0) == 1.0
