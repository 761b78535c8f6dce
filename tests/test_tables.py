"""The paper's tables from raw results: numbers worked by hand, empty cells, the paper's numbers, every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from grid_results import strict_json, write_result
from rhirl.cli import main
from rhirl.experiments.grid.results import read_results
from rhirl.experiments.tables.formats import as_csv, latex, markdown
from rhirl.experiments.tables.paper import RETURNS, transferred_ratio
from rhirl.experiments.tables.table import Entry, Table, make_table
from rhirl.tasks import TASKS

COMMITTED = Path(__file__).parents[1] / "results/runs"
Captured = pytest.CaptureFixture[str]


def entry(table: Table, task: str, method: str, noise: float) -> Entry:
    (found,) = (cell for cell in table.cells if (cell.task, cell.method, cell.noise) == (task, method, noise))
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Four seeds of ours and three of f-IRL on Hopper, one of ours on Walker2d, none of anything else."""
    for seed, mean in enumerate((50.0, 80.0, 90.0, 100.0)):
        write_result(tmp_path, "hopper", "rhirl", seed, {0.0: mean, 0.5: mean / 2}, expert={0.5: 60.0})
    for seed, mean in enumerate((85.0, 40.0, 60.0)):
        write_result(tmp_path, "hopper", "firl", seed, {0.0: mean})
    write_result(tmp_path, "walker2d", "rhirl", 0, {0.2: 30.0}, learned_at=0.2, expert={0.2: 60.0})
    return tmp_path


def test_a_cell_by_hand(root: Path) -> None:
    found = entry(make_table(1, root), "hopper", "rhirl", 0.0)
    assert (found.seeds, found.ratio) == (4, 0.8)
    assert found.iqm == pytest.approx(0.85)
    assert found.deviation == pytest.approx(np.sqrt((0.3**2 + 0.1**2 + 0.2**2) / 4))
    assert found.interval is not None
    low, high = found.interval
    assert 0.5 <= low < 0.85 < high <= 1.0
    assert (found.return_mean, found.expert_return) == (80.0, 100.0)


def test_a_cell_that_was_not_run_is_empty_and_never_zero(root: Path) -> None:
    found = entry(make_table(1, root), "ant", "gail", 0.5)
    assert (found.seeds, found.ratio, found.deviation, found.iqm, found.interval) == (0, None, None, None, None)
    assert found.paper_ratio == 0.0  # the paper's number is one, ours is not


def test_table_1_leaves_out_what_was_learned_under_other_noise(root: Path) -> None:
    table = make_table(1, root)
    assert entry(table, "hopper", "rhirl", 0.5).ratio is None
    assert entry(table, "walker2d", "rhirl", 0.2).ratio == 0.5


def test_table_2_compares_with_the_expert_without_noise(root: Path) -> None:
    table = make_table(2, root)
    assert entry(table, "hopper", "rhirl", 0.5).ratio == pytest.approx(0.4)  # half of 80, over 100 and not 60
    assert entry(table, "walker2d", "rhirl", 0.2).ratio is None


def test_table_2_takes_a_rivals_cost_with_a_new_policy_and_never_with_the_old_one(root: Path) -> None:
    run = write_result(root, "hopper", "firl", 0, {0.0: 85.0, 0.2: 20.0})
    new = run.path / "eval/noise0.2-seed0-reoptimised.json"
    (run.path / "eval/noise0.2-seed0.json").write_text(
        json.dumps(json.loads(new.read_text()) | {"reoptimised": False, "return_mean": 99.0})
    )
    assert entry(make_table(2, root), "hopper", "firl", 0.2).ratio == 0.2
    new.unlink()
    assert entry(make_table(2, root), "hopper", "firl", 0.2).ratio is None


def test_a_cost_whose_proposal_rehearsed_is_a_row_of_table_2_beside_the_one_that_plans_anew(root: Path) -> None:
    run = write_result(root, "hopper", "rhirl", 7, {0.0: 90.0, 0.5: 30.0})
    planned = run.path / "eval/noise0.5-seed7.json"
    rehearsed = json.loads(planned.read_text()) | {"reoptimised": True, "return_mean": 75.0}
    planned.with_name("noise0.5-seed7-reoptimised.json").write_text(json.dumps(rehearsed))
    before = entry(make_table(2, root), "hopper", "rhirl", 0.5)
    found = entry(make_table(2, root), "hopper", "rhirl-rehearsed", 0.5)
    assert (found.seeds, found.ratio, found.paper_ratio) == (1, 0.75, before.paper_ratio)
    names = [(cell.task, cell.method) for cell in make_table(2, root).cells]
    assert names.index(("hopper", "rhirl-rehearsed")) == names.index(("hopper", "firl")) - 1
    assert "rhirl-rehearsed" not in {cell.method for cell in make_table(1, root).cells}


def test_summaries_pool_tasks_and_compare_with_every_rival(root: Path) -> None:
    summaries = {(s.method, s.noise): s for s in make_table(1, root).summaries}
    rival = summaries["firl", 0.0]
    assert (rival.tasks, rival.seeds) == (1, 3)
    # Of 12 pairs ours wins: 50 one of three, 80 two, 90 three, 100 three.
    assert rival.improvement == pytest.approx(9 / 12)
    assert rival.improvement_interval is not None
    assert summaries["rhirl", 0.0].improvement is None
    assert ("gail", 0.0) not in summaries


def test_the_papers_numbers_stand_beside_ours() -> None:
    """The second table's printed ratios, but for the cells where the paper contradicts its own appendix."""
    printed = {
        ("pendulum", "rhirl"): (1.07, 1.06),
        ("pendulum", "firl"): (0.90, 0.85),
        ("hopper", "rhirl"): (0.80, 0.67),
        ("hopper", "firl"): (0.65, 0.62),
        ("hopper", "airl"): (0.01, 0.00),
        ("walker2d", "firl"): (0.60, 0.22),
        ("walker2d", "airl"): (0.28, 0.36),
        ("ant", "rhirl"): (0.55, 0.15),
        ("ant", "gail"): (0.00, 0.00),
    }
    for (task, method), ratios in printed.items():
        for noise, ratio in zip((0.2, 0.5), ratios, strict=True):
            assert transferred_ratio(task, method, noise) == pytest.approx(ratio, abs=0.0075)
        assert transferred_ratio(task, method, 0.0) == TASKS[task].paper_ratio(method, 0.0)
    assert transferred_ratio("hopper", "bc", 0.2) is None
    assert all(len(methods) == 4 for methods in RETURNS.values())


def test_the_committed_results_give_the_published_numbers() -> None:
    found = entry(make_table(1, COMMITTED), "pendulum", "rhirl", 0.2)
    assert (found.seeds, round(found.ratio or 0, 3), round(found.deviation or 0, 3)) == (5, 0.972, 0.011)
    assert found.paper_ratio == pytest.approx(1.077, abs=1e-3)


@pytest.mark.parametrize(
    ("task", "method", "noise", "ratio", "deviation"),
    [
        ("lunar_lander", "rhirl", 0.0, 0.976, 0.018),
        ("lunar_lander", "rhirl", 0.2, 0.988, 0.009),
        ("lunar_lander", "rhirl", 0.5, 1.003, 0.035),
        ("hopper", "rhirl", 0.0, 1.000, 0.006),
        ("hopper", "rhirl", 0.2, 1.041, 0.015),
        ("hopper", "rhirl", 0.5, 0.991, 0.065),
        ("walker2d", "rhirl", 0.0, 0.998, 0.002),
        ("walker2d", "rhirl", 0.2, 1.009, 0.014),
        ("walker2d", "rhirl", 0.5, 1.009, 0.051),
        ("ant", "rhirl", 0.0, 0.920, 0.014),
        ("hopper", "firl", 0.0, 0.977, 0.006),
        ("hopper", "firl", 0.5, 0.899, 0.087),
        ("hopper", "gail", 0.0, 0.965, 0.009),
        ("hopper", "airl", 0.0, 0.925, 0.008),
        ("hopper", "airl", 0.5, 0.992, 0.065),
        ("lunar_lander", "airl", 0.0, 0.707, 0.097),
        ("lunar_lander", "airl", 0.5, 0.735, 0.047),
        ("lunar_lander", "gail", 0.5, 0.170, 0.063),
        ("lunar_lander", "bc", 0.5, 0.764, 0.046),
        ("pendulum", "airl", 0.0, 0.984, 0.002),
    ],
)
def test_the_committed_results_of_three_seeds_give_the_published_numbers(
    task: str, method: str, noise: float, ratio: float, deviation: float
) -> None:
    found = entry(make_table(1, COMMITTED), task, method, noise)
    assert (found.seeds, round(found.ratio or 0, 3), round(found.deviation or 0, 3)) == (3, ratio, deviation)


@pytest.mark.parametrize(("noise", "ratio"), [(0.2, 0.985), (0.5, 0.542)])
def test_a_landers_cost_learned_without_noise_is_planned_with_amid_noise(noise: float, ratio: float) -> None:
    found = entry(make_table(2, COMMITTED), "lunar_lander", "rhirl", noise)
    assert (found.seeds, round(found.ratio or 0, 3)) == (3, ratio)


@pytest.mark.parametrize(
    ("task", "noise", "ratio"),
    [("hopper", 0.2, 0.891), ("hopper", 0.5, 0.795), ("walker2d", 0.2, 0.901), ("walker2d", 0.5, 0.404)],
)
def test_a_cost_learned_without_noise_serves_a_proposal_that_rehearses(
    task: str, noise: float, ratio: float
) -> None:
    found = entry(make_table(2, COMMITTED), task, "rhirl-rehearsed", noise)
    assert found.seeds == 3
    assert found.ratio == pytest.approx(ratio, abs=1e-3)


def test_json_keeps_the_contract(root: Path, capsys: Captured) -> None:
    for number in ("1", "2"):
        main(["table", number, "--results", str(root), "--json"])
        said = capsys.readouterr()
        assert said.err == ""
        document = strict_json(said.out)
        assert {"task", "method", "noise", "seeds", "ratio", "paper_ratio"} <= set.intersection(
            *(set(cell) for cell in document["cells"])
        )
        assert any(cell["ratio"] is None for cell in document["cells"])
        assert len({(cell["task"], cell["method"], cell["noise"]) for cell in document["cells"]}) == len(
            document["cells"]
        )


def test_markdown(root: Path) -> None:
    lines = markdown(make_table(1, root)).splitlines()
    (row,) = (line for line in lines if line.startswith("| hopper | RHIRL |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:6] == ["0.800 ± 0.187", cells[3], "4", "0.95"]
    assert cells[3].startswith("0.850 [")
    assert cells[6:10] == ["", "", "", "0.99"]
    assert len({line.count("|") for line in lines[2:] if line.startswith("| ") and "hopper" in line}) == 1


def test_csv(root: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(make_table(1, root)))))
    found = {(row["task"], row["method"], row["noise"]): row for row in rows}
    assert float(found["hopper", "rhirl", "0"]["ratio"]) == 0.8
    assert found["ant", "bc", "0.5"]["ratio"] == found["ant", "bc", "0.5"]["paper_ratio"] == ""
    assert found["ant", "bc", "0.5"]["seeds"] == "0"


def test_latex(root: Path) -> None:
    text = latex(make_table(2, root))
    assert text.startswith(r"\begin{tabular}{llcccccccccccc}")
    assert text.count(r"\midrule") == 6
    assert r"lunar\_lander & RHIRL & " in text
    assert r"0.800 $\pm$ 0.187" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count("&") for line in rows} == {13}


@pytest.mark.parametrize(
    ("flags", "beginning"), [([], "**Table 1.**"), (["--csv"], "task,method,"), (["--latex"], r"\begin{tabular}")]
)
def test_every_format_is_a_document_on_standard_output(
    flags: list[str], beginning: str, root: Path, capsys: Captured
) -> None:
    main(["table", "1", "--results", str(root), *flags])
    said = capsys.readouterr()
    assert said.out.startswith(beginning)
    assert said.err == ""


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["3"], "no table 3; there are 1, 2"), (["1", "--results", "nowhere"], "nowhere: no such")],
)
def test_mistakes_are_one_sentence(words: list[str], complaint: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as end:
        main(["table", *words])
    assert end.value.code == 2
    assert complaint in capsys.readouterr().err


def test_only_the_evaluation_of_the_runs_own_seed_counts(tmp_path: Path) -> None:
    run = write_result(tmp_path, "hopper", "rhirl", 3, {0.0: 70.0})
    other = json.loads((run.path / "eval/noise0-seed3.json").read_text())
    run.write_json("eval/noise0-seed0.json", other | {"return_mean": 1.0, "seed": 0})
    (result,) = read_results(tmp_path)
    assert (result.seed, result.return_mean, result.calm_ratio) == (3, 70.0, 0.7)
