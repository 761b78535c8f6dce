"""Figures from raw results: what is drawn is what was measured, and what was not run is said to be missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from grid_results import write_curve, write_result
from rhirl.cli import main
from rhirl.experiments.grid import read_spec
from rhirl.experiments.grid.results import curve
from rhirl.report.curves import over_seeds
from rhirl.report.paper_figures import FIGURES


def texts(figure: Figure) -> str:
    return " ".join(text.get_text() for axes in figure.axes for text in axes.texts)


def lines(figure: Figure, panel: int) -> dict[str, tuple[list[float], list[float]]]:
    """What is drawn in a panel: name → x, y."""
    return {
        str(line.get_label()): (list(np.asarray(line.get_xdata())), list(np.asarray(line.get_ydata())))
        for line in figure.axes[panel].get_lines()
    }


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_nothing_says_so(name: str, tmp_path: Path) -> None:
    assert "not run yet" in texts(FIGURES[name](tmp_path))


def test_a_curve_is_read_over_executed_steps_simulated_steps_and_seconds(tmp_path: Path) -> None:
    run = write_result(tmp_path, "hopper", "rhirl", 0, {0.0: 1.0})
    run.append_metrics({"iteration": 1, "steps/executed": 50, "steps/simulated": 5, "time/steps_per_s": 10.0})
    write_curve(run, [0.5, 0.75])
    seen = curve(run)
    assert list(seen["executed"]) == [100, 200]
    assert list(seen["simulated"]) == [1000, 2000]
    assert list(seen["seconds"]) == [5 + 1, 5 + 1 + 2]
    assert list(seen["score"]) == [0.5, 0.75]
    assert list(seen["return"]) == [50, 75]


def test_a_method_that_never_acts_has_a_curve_without_steps(tmp_path: Path) -> None:
    run = write_result(tmp_path, "hopper", "bc", 0, {0.0: 1.0})
    write_curve(run, [0.5, 0.75], executed=0, simulated=None)
    seen = curve(run)
    assert list(seen["executed"]) == list(seen["seconds"]) == [0, 0]
    assert np.isnan(seen["simulated"]).all()


def test_seeds_are_lined_up_as_far_as_all_of_them_go() -> None:
    short = {"seconds": np.array([1.0, 3.0]), "score": np.array([0.2, 0.4])}
    long = {"seconds": np.array([3.0, 5.0, 9.0]), "score": np.array([0.6, 0.8, 1.0])}
    x, heights = over_seeds([long, short], "seconds", "score")
    assert list(x) == [2.0, 4.0]
    assert heights.tolist() == [[0.6, 0.8], [0.2, 0.4]]


def test_learning_curves_show_every_method_over_what_it_has(tmp_path: Path) -> None:
    for seed, scores in enumerate(([0.2, 0.6], [0.4, 1.0])):
        write_curve(write_result(tmp_path, "hopper", "rhirl", seed, {0.0: 1.0}), scores)
    write_curve(write_result(tmp_path, "hopper", "firl", 0, {0.0: 1.0}), [0.1, 0.3], executed=500, simulated=None)
    write_curve(write_result(tmp_path, "hopper", "bc", 0, {0.0: 1.0}), [0.1, 0.7], executed=0, simulated=None)
    figure = FIGURES["curves"](tmp_path)
    executed, simulated, seconds = (lines(figure, panel) for panel in range(3))
    assert executed["RHIRL (2)"][0] == [100, 200]
    assert executed["RHIRL (2)"][1] == pytest.approx([0.3, 0.8])
    assert executed["f-IRL (1)"] == ([500, 1000], [0.1, 0.3])
    assert executed["BC (1)"][1] == [0.7, 0.7]
    assert [axes.get_xscale() for axes in figure.axes] == ["linear"] * 3
    assert simulated["RHIRL (2)"][0] == [1000, 2000]
    assert "f-IRL (1)" not in simulated
    assert seconds["RHIRL (2)"][0] == [2, 4]


def test_runs_scored_only_in_the_end_are_a_dot_there(tmp_path: Path) -> None:
    for seed, score in enumerate((80.0, 100.0)):
        run = write_result(tmp_path, "hopper", "rhirl", seed, {0.0: score, 0.5: 3.0})
        for executed in (100, 200):
            run.append_metrics({"iteration": 1, "steps/executed": executed, "time/steps_per_s": 50.0})
    write_curve(write_result(tmp_path, "hopper", "firl", 0, {0.0: 1.0}), [0.1, 0.3], executed=6_000)
    figure = FIGURES["curves"](tmp_path)
    drawn = lines(figure, 0)
    assert drawn["RHIRL, in the end (2)"][0] == [200]
    assert drawn["RHIRL, in the end (2)"][1] == pytest.approx([0.9])
    assert drawn["f-IRL (1)"][1] == [0.1, 0.3]
    assert figure.axes[0].get_xscale() == "log"


def test_a_run_scored_only_in_the_end_leaves_the_curves_of_the_others_whole(tmp_path: Path) -> None:
    write_curve(write_result(tmp_path, "hopper", "rhirl", 0, {0.0: 90.0}), [0.2, 0.6, 0.8])
    write_curve(write_result(tmp_path, "hopper", "rhirl", 1, {0.0: 90.0}), [0.4, 0.6, 1.0])
    end = write_result(tmp_path, "hopper", "rhirl", 2, {0.0: 70.0})
    end.append_metrics({"iteration": 3, "steps/executed": 300, "time/steps_per_s": 50.0})
    figure = FIGURES["curves"](tmp_path)
    drawn = lines(figure, 0)
    x, heights = drawn["RHIRL (2)"]
    assert x == [100, 200, 300]
    assert heights == pytest.approx([0.3, 0.6, 0.9])
    assert drawn["RHIRL, in the end (1)"] == ([300], [0.7])


def test_the_curve_of_a_run_scored_on_the_way_stands_beside_those_scored_in_the_end(tmp_path: Path) -> None:
    write_curve(write_result(tmp_path, "hopper", "rhirl-scored", 0, {}), [0.2, 0.8])
    write_curve(write_result(tmp_path, "hopper", "rhirl-K5", 0, {0.0: 1.0}), [0.0, 0.1])
    end = write_result(tmp_path, "hopper", "rhirl", 0, {0.0: 70.0})
    end.append_metrics({"iteration": 2, "steps/executed": 200, "time/steps_per_s": 50.0})
    drawn = lines(FIGURES["curves"](tmp_path), 0)
    assert drawn["RHIRL (1)"] == ([100, 200], [0.2, 0.8])
    assert drawn["RHIRL, in the end (1)"] == ([200], [0.7])
    assert not any("K5" in name for name in drawn)


def test_the_horizon_is_drawn_over_executed_and_simulated_steps(tmp_path: Path) -> None:
    for name, K in (("rhirl-K5", 5), ("rhirl", 20), ("rhirl-K100", 100)):
        run = write_result(tmp_path, "hopper", name, 0, {0.0: 1.0})
        write_curve(run, [0.1, 0.2], simulated=10 * K)
    figure = FIGURES["horizon"](tmp_path)
    assert lines(figure, 0)["K = 5 (1)"] == lines(figure, 0)["K = 100 (1)"] == ([100, 200], [10, 20])
    assert lines(figure, 1)["K = 5 (1)"][0] == [50, 100]
    assert lines(figure, 1)["K = 20 (1)"][0] == [200, 400]
    assert lines(figure, 1)["K = 100 (1)"][0] == [1000, 2000]


def test_the_stochastic_figure_shows_every_seed_and_the_interquartile_mean(tmp_path: Path) -> None:
    task = read_spec("stochastic").cells[0].task
    for M_s, scores in ((1, (50.0, 60.0, 70.0)), (16, (80.0, 90.0))):
        for seed, score in enumerate(scores):
            write_result(tmp_path, task, f"rhirl-Ms{M_s}", seed, {0.0: score})
    figure = FIGURES["stochastic"](tmp_path)
    drawn = [list(np.asarray(line.get_ydata())) for line in figure.axes[0].get_lines()]
    assert drawn[:4] == [[0.5, 0.6, 0.7], [pytest.approx(0.6)], [0.8, 0.9], [pytest.approx(0.85)]]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1\n(3 seeds)", "16\n(2 seeds)"]


def test_the_growth_of_the_error_is_summed_over_time(tmp_path: Path) -> None:
    found = {"error": [1.0, 1.5, 2.0], "total": [1, 2, 4], "exponent": 1.25, "exponent_interval": [1.1, 1.4]}
    path = tmp_path / "error_growth/error_growth.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"methods": {"rhirl": found}, "floor": [0.0, 0.5, 0.0]}))
    figure = FIGURES["error-growth"](tmp_path / "runs")
    assert lines(figure, 0)["RHIRL"][1] == [1.0, 1.5, 2.0]
    (name, (x, y)), *_ = lines(figure, 1).items()
    assert (x, y) == ([1, 2, 3], [1, 2, 4])
    assert "1.25" in name


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_figure_is_written_as_its_name_says(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new" / f"curves.{suffix}"
    main(["figure", "curves", "--results", str(tmp_path), "--out", str(target)])
    assert str(target) in capsys.readouterr().err.replace("\n", "")
    assert target.read_bytes()[:5] == (b"<?xml" if suffix == "svg" else b"\x89PNG\r")
