"""Explanations are kept once for all seeds, and never mistaken for those of something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rhirl.demos import Demonstrations
from rhirl.proposals import explanations
from rhirl.proposals.apprentice import explain_demos
from rhirl.proposals.explanations import digest, explanation, folder
from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.tasks import get_task

PENDULUM = get_task("pendulum")


@pytest.fixture
def short(pendulum_demos: Demonstrations) -> Demonstrations:
    """One demonstration of five steps."""
    one = pendulum_demos.take(1)
    return replace(one, observations=one.observations[:, :6], lengths=np.array([5]), controls=None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Who was asked for explanations, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls: list[Any] = []

    def counted(*words: Any) -> Any:
        calls.append(words)
        return explain_demos(*words)

    monkeypatch.setattr(explanations, "explain_demos", counted)
    return calls


def test_a_second_run_does_not_ask_the_simulator(short: Demonstrations, asked: list[Any]) -> None:
    said: list[str] = []
    first = explanation(PENDULUM, short)
    second = explanation(PENDULUM, short, said.append)
    assert len(asked) == 1
    np.testing.assert_array_equal(first.controls, second.controls)
    np.testing.assert_array_equal(first.residuals, second.residuals)
    assert np.nanmax(second.residuals) < 1e-6
    assert str(folder()) in said[0]
    assert [path.suffix for path in folder().iterdir()] == [".safetensors"]


def test_other_states_another_task_and_other_versions_are_asked_anew(
    short: Demonstrations, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = short.observations.copy()
    moved[0, 3, 2] += np.float32(1e-6)
    names = [digest(PENDULUM, short), digest(PENDULUM, replace(short, observations=moved))]
    names += [digest(PENDULUM, replace(short, lengths=np.array([4]))), digest(get_task("windy_pendulum"), short)]
    monkeypatch.setattr(explanations, "surroundings", lambda: {"versions": {"mujoco": "5.0"}})
    names.append(digest(PENDULUM, short))
    monkeypatch.setattr(explanations, "CODE", ("learning/explain.py",))
    names.append(digest(PENDULUM, short))
    assert len(set(names)) == 6


def test_what_a_task_has_set_up_counts_where_its_simulator_shows_it(short: Demonstrations) -> None:
    known = digest(PENDULUM, short)
    assert digest(replace(PENDULUM, presets={}), short) == known
    assert digest(replace(PENDULUM, simulator=lambda: PendulumSimulator(g=9.81)), short) != known


def test_a_broken_file_is_replaced(short: Demonstrations, asked: list[Any]) -> None:
    explanation(PENDULUM, short)
    (path,) = folder().iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    explanation(PENDULUM, short)
    assert len(asked) == 2
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(
    short: Demonstrations, asked: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "rhirl").write_text("in the way")
    said: list[str] = []
    found = explanation(PENDULUM, short, said.append)
    assert np.nanmax(found.residuals) < 1e-6
    assert "not kept" in said[-1]


def test_processes_explain_as_one_does(pendulum_demos: Demonstrations, monkeypatch: pytest.MonkeyPatch) -> None:
    demos = replace(pendulum_demos, observations=pendulum_demos.observations[:, :21], lengths=np.array([20, 9, 20]))
    demos = replace(demos, controls=None)
    said: list[str] = []
    alone = explanations.ask(PENDULUM, demos, 1)
    monkeypatch.setattr(explanations, "FEW", 0)
    shared = explanations.ask(PENDULUM, demos, 2, said.append)
    np.testing.assert_array_equal(alone.controls, shared.controls)
    np.testing.assert_array_equal(alone.residuals, shared.residuals)
    assert np.isnan(shared.residuals[1, 9:]).all()
    assert said[-1] == "3 of 3 demonstrations explained by controls"
