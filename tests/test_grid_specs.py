"""Grids as people write them: what a file means, and what is said where it means nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from grid_results import write_curve, write_result
from rhirl.experiments.grid import Cell
from rhirl.experiments.grid.engines import cell_from_json
from rhirl.experiments.grid.estimates import (
    EXACT,
    LED,
    durations,
    estimate,
    in_words,
    planning_seconds,
    practising_seconds,
    remaining,
    took,
)
from rhirl.experiments.grid.progress import Seen
from rhirl.experiments.grid.specs import SpecError, built_in_names, read_spec

BLOCK = '[[runs]]\ntasks = ["pendulum"]\nmethods = ["rhirl"]\n'


def spec_file(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_the_grids_of_the_paper_come_along() -> None:
    assert {"table1", "table2", "ablation-horizon", "learning-curves", "smoke"} <= set(built_in_names())


def test_table_1_has_every_task_method_and_noise_level_and_begins_with_ours_in_calm_air() -> None:
    cells = read_spec("table1").cells
    tasks = {"pendulum", "lunar_lander", "hopper", "walker2d", "ant", "car_racing"}
    methods = {t: ("rhirl",) if t == "car_racing" else ("rhirl", "firl", "airl", "gail", "bc") for t in tasks}
    wanted = {(t, m, n) for t in tasks for m in methods[t] for n in (0.0, 0.2, 0.5)}
    seeds = Counter((cell.task, cell.label, cell.noise) for cell in cells)
    assert wanted <= seeds.keys()
    assert min(seeds.values()) >= 3
    assert {(cell.method, cell.noise) for cell in cells[:18]} == {("rhirl", 0.0)}
    assert {cell.task for cell in cells[:18]} == tasks


def test_table_2_learns_in_calm_air_and_acts_under_noise() -> None:
    cells = read_spec("table2").cells
    assert {cell.noise for cell in cells} == {0.0}
    assert {cell.levels for cell in cells} == {(0.0, 0.2, 0.5)}


def test_the_runs_without_noise_are_shared_by_all_three_grids() -> None:
    folders = {
        name: {cell.folder for cell in read_spec(name).cells} for name in ("table1", "table2", "learning-curves")
    }
    assert folders["table2"] == folders["learning-curves"] < folders["table1"]


def test_the_horizon_is_planned_and_acted_with() -> None:
    cells = read_spec("ablation-horizon").cells
    horizons = {cell.label: [cell.plan().hyper[by]["K"] for by in ("planner", "deploy")] for cell in cells}
    assert horizons == {"rhirl": [20, 20], "rhirl-K5": [5, 5], "rhirl-K100": [100, 100]}
    assert {cell.task for cell in cells} == {"hopper"}


def test_the_horizon_of_the_default_is_not_run_twice() -> None:
    shared = {cell.folder for cell in read_spec("ablation-horizon").cells if not cell.variant}
    assert len(shared) == 3
    assert shared < {cell.folder for cell in read_spec("table1").cells}


def test_a_file_is_expanded_in_its_order(tmp_path: Path) -> None:
    text = BLOCK + 'noises = [0, 0.5]\nseeds = 2\nvariants.a = ["lr=1e-3"]\nvariants.b = []\n'
    cells = read_spec(spec_file(tmp_path, f"episodes = 7\n{text}")).cells
    assert [str(cell.folder) for cell in cells] == [
        f"pendulum/rhirl-{variant}/noise{noise}/seed{seed}"
        for variant in "ab"
        for noise in ("0", "0.5")
        for seed in (0, 1)
    ]
    assert cells[0].settings == ("lr=1e-3",)
    assert {cell.episodes for cell in cells} == {7}
    few = read_spec(spec_file(tmp_path, f"episodes = 7\n{text}\nepisodes = 3\n")).cells
    assert {cell.episodes for cell in few} == {3}


def test_seeds_are_a_number_or_a_list_and_can_be_replaced(tmp_path: Path) -> None:
    path = spec_file(tmp_path, BLOCK + "seeds = [3, 5]\n")
    assert [cell.seed for cell in read_spec(path).cells] == [3, 5]
    assert [cell.seed for cell in read_spec(path, seeds=3).cells] == [0, 1, 2]


def test_a_cell_asked_for_twice_is_done_once_and_evaluated_as_both_ask(tmp_path: Path) -> None:
    cells = read_spec(spec_file(tmp_path, f"{BLOCK}seeds = 1\n{BLOCK}seeds = 1\nevaluate_at = [0.5]\n")).cells
    assert [cell.levels for cell in cells] == [(0.0, 0.5)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "at least one"),
        ("title = ", "not TOML"),
        (BLOCK + "noise = [0.2]", "no key 'noise'; there are tasks, methods, noises"),
        (BLOCK + 'seeds = "three"', "seeds cannot be 'three'"),
        ("[[runs]]\ntasks = []\nmethods = ['rhirl']", "say which tasks"),
        (BLOCK + '\n[[runs]]\ntasks = ["pendulum"]\nmethods = ["rhirl"]\ndemonstrations = 3', "name a variant"),
    ],
)
def test_a_file_that_means_nothing_is_refused_in_one_sentence(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=complaint):
        read_spec(spec_file(tmp_path, text))


def test_a_block_says_how_often_its_runs_are_scored_while_they_learn(tmp_path: Path) -> None:
    often, never = BLOCK, f"{BLOCK}evaluations = 0\nvariants.quick = []\n"
    cells = read_spec(spec_file(tmp_path, f"{often}{never}seeds = 1")).cells
    assert {cell.label: cell.plan().evaluations for cell in cells} == {"rhirl": 10, "rhirl-quick": 0}


def test_unknown_grids_and_files_are_refused() -> None:
    with pytest.raises(SpecError, match="no grid 'table3'; there are ablation-horizon"):
        read_spec("table3")
    with pytest.raises(SpecError, match="no such file"):
        read_spec("nowhere.toml")


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        (Cell("pendulum", "rhirl"), "rhirl"),
        (Cell("pendulum", "rhirl", preset="paper"), "rhirl-paper"),
        (Cell("pendulum", "rhirl", preset="paper", variant="K5"), "rhirl-paper-K5"),
    ],
)
def test_a_cell_is_called_after_method_preset_and_variant(cell: Cell, label: str) -> None:
    assert cell.label == label
    assert cell.folder == Path("pendulum") / label / "noise0" / "seed0"


def test_a_cell_travels_as_json() -> None:
    import json
    from dataclasses import asdict

    for cell in read_spec("smoke").cells + read_spec("table2").cells[:3]:
        assert cell_from_json(json.dumps(asdict(cell))) == cell


def test_estimates_add_up_what_is_known_and_count_what_is_not() -> None:
    cells = [Cell("a", "rhirl"), Cell("a", "rhirl", seed=1), Cell("b", "bc")]
    assert estimate(cells, {("a", "rhirl"): 40.0}) == (80.0, 1)


def test_what_a_gpu_took_says_nothing_about_a_core(tmp_path: Path) -> None:
    cells = [Cell("hopper", "gail", seed=seed) for seed in (0, 1)]
    for seed, device in enumerate(("TFRT_CPU_0", "cuda:0")):
        run = write_result(tmp_path, "hopper", "gail", seed, {0.0: 90.0})
        write_curve(run, [0.5, 0.9], executed=100 * (1 + seed))
        run.write_json("meta.json", {"device": device})
        assert took(run) == 4.0 * (1 + seed)
    assert durations(cells, tmp_path) == {("hopper", "gail"): 4.0}
    assert durations(cells[1:], tmp_path) == durations(cells[1:], tmp_path / "empty")


def test_a_rival_takes_its_steps_and_as_many_for_every_policy_learned_anew() -> None:
    cell = Cell("ant", "firl", levels=(0.0, 0.2, 0.5))
    assert practising_seconds(cell, 250.0) == 3 * 1_000_000 / 250
    assert practising_seconds(replace(cell, method="gail"), 250.0) == 1_000_000 / 250
    assert practising_seconds(replace(cell, levels=(), settings=("steps=5000",)), 250.0) == 20


def test_only_what_was_neither_measured_nor_finished_is_unknown(tmp_path: Path) -> None:
    cells = [Cell(task, method) for task in ("ant", "car_racing") for method in ("rhirl", "firl", "bc")]
    known = {("ant", "rhirl"), ("ant", "firl"), ("car_racing", "rhirl")}
    assert durations(cells, tmp_path).keys() == known


def test_a_planner_that_holds_its_controls_plans_less_often() -> None:
    cell = Cell("car_racing", "rhirl", episodes=10)
    learning, plans = 600 * 4 * 48 * 10, (10 * 5 + 10) * 1000 / 4
    assert planning_seconds(cell, 1000.0) == (learning + plans * 64 * 10) / 1000


def test_to_be_scored_while_it_learns_takes_its_time() -> None:
    cell = Cell("hopper", "rhirl", episodes=20, settings=("beyond=0",))
    saved = planning_seconds(cell, 1000.0) - planning_seconds(replace(cell, evaluations=0), 1000.0)
    assert saved == pytest.approx(10 * 5 * 1000 * 60 * 20 / 1000)


def test_a_look_beyond_the_horizon_takes_its_time() -> None:
    cell = Cell("hopper", "rhirl", episodes=20, settings=("beyond=100",))
    blind = planning_seconds(replace(cell, settings=("beyond=0",)), 1000.0)
    seeing = planning_seconds(cell, 1000.0)
    assert seeing - blind == pytest.approx((10 * 5 + 20) * 1000 * LED * (20 + 100) / 1000)


def test_amid_noise_danger_is_learned_once_and_the_planner_of_learning_acts() -> None:
    cell = Cell("hopper", "rhirl", noise=0.5, episodes=20, settings=("beyond=100",))
    learning, acting = 1_600 * 8 * 100 * 20, (10 * 5 + 20) * 1000 * 100 * 20
    led = LED * 1_500 * 4 * 100
    assert planning_seconds(cell, 1000.0) == pytest.approx((learning + acting + led) / 1000)


def test_a_cell_in_work_is_judged_by_its_own_pace() -> None:
    def seen(stage: str, done: int, total: int, **seconds: float) -> Seen:
        return Seen(stage, done, total, seconds, 1, "here")

    assert remaining(seen("training", 25, 100, training=10.0), None) == 30.0
    assert remaining(seen("training", 0, 100, training=1.0), 50.0) == 49.0
    assert remaining(seen("evaluating at σ=0", 1, 2, training=45.0, evaluation=10.0), 50.0) == 0.0
    assert remaining(seen("starting", 0, 1), None) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(45, "45 s"), (720, "12 min"), (12_000, "3 h 20 min"), (187_200, "2 d 4 h")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_to_rehearse_and_to_plan_on_the_exact_model_take_their_time() -> None:
    cell = Cell("ant", "rhirl", noise=0.2, episodes=20)
    learning, acting = 800 * 8 * 30 * 8, (10 * 5 + 20) * 1000 * 30 * 8
    led = 1_500 * 4 * 40 + 60 * 25_600
    expected = (EXACT * (learning + acting) + LED * led) / 1000
    assert planning_seconds(cell, 1000.0) == pytest.approx(expected)
    on_the_cheap_model = replace(cell, settings=("as_acting=False",))
    expected = (800 * 8 * 100 * 15 + EXACT * acting + LED * led) / 1000
    assert planning_seconds(on_the_cheap_model, 1000.0) == pytest.approx(expected)
