"""The self-check finds a simulator that is not what it simulates, and lets chance be chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rhirl.experiments.doctor import examine, parity
from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.tasks import get_task


@pytest.mark.parametrize("name", ["pendulum", "hopper", "car_racing"])
def test_simulators_without_chance_are_their_environments(name: str) -> None:
    assert parity(get_task(name), steps=5) == "largest difference over 5 steps: 0.0e+00"


@pytest.mark.parametrize("name", ["windy_pendulum", "lunar_lander"])
def test_chance_parts_a_simulator_from_its_environment_as_it_parts_two_simulations(name: str) -> None:
    assert "between two simulations" in parity(get_task(name))


@pytest.mark.parametrize("settings", [{"g": 9.0}, {"g": 9.0, "process_noise": 0.01}])
def test_a_simulator_of_something_else_is_found(settings: dict[str, float]) -> None:
    wrong = replace(get_task("pendulum"), simulator=lambda: PendulumSimulator(**settings))
    with pytest.raises(ArithmeticError, match="largest difference over 20 steps"):
        parity(wrong)


def test_everything_is_examined_and_well(quick_compilation: None) -> None:
    findings = list(examine())
    assert [finding for finding in findings if not finding.well] == []
    assert {"weights", "learning", "car_racing simulator beside Gymnasium"} <= {one.what for one in findings}
