"""Training the expert that demonstrates, and who that is."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from rhirl.experiments.agents import DEMONSTRATORS, expert_agent
from rhirl.experiments.expert import plan_expert, train_expert
from rhirl.experiments.run import RunDirectory
from rhirl.rl import Policy
from rhirl.tasks import TASKS, get_task


def test_every_task_declares_an_expert_that_there_is() -> None:
    assert {task.demonstrator for task in TASKS.values()} == DEMONSTRATORS.keys()


def test_a_task_may_borrow_the_expert_of_another() -> None:
    borrowed, own = expert_agent(get_task("windy_pendulum")), expert_agent(get_task("pendulum"))
    env, x = get_task("pendulum").make_env(), np.array([0.6, 0.8, 1.0], np.float32)
    assert borrowed.act(env, x).tobytes() == own.act(env, x).tobytes()


@pytest.mark.parametrize("name", ["pendulum", "windy_pendulum"])
def test_an_expert_is_trained_and_scored_also_where_the_paper_has_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_compilation: None
) -> None:
    module = import_module("rhirl.experiments.expert")
    for constant, value in (("EVALUATIONS", 1), ("EVALUATION_EPISODES", 1), ("FINAL_EPISODES", 2)):
        monkeypatch.setattr(module, constant, value)
    run, task = RunDirectory(tmp_path / "run"), get_task(name)
    card = train_expert(run, plan_expert(task, steps=128))
    assert card["returns"] == json.loads((run.path / "card.json").read_text())["returns"]
    assert card["paper_expert"] == (-154.69 if name == "pendulum" else None)
    assert len(card["returns"]) == 2
    said = Policy.load(run.policy).metadata
    assert json.loads(said["rhirl"]) == {"task": name, "env": task.env_id}
    assert len(said) == 1  # several would be written in an order drawn at random


def test_an_expert_that_plans_needs_no_training() -> None:
    with pytest.raises(ValueError, match=r"the expert of car_racing is a driver .*: rhirl train car_racing"):
        plan_expert(get_task("car_racing"))
