"""The command line as people and scripts use it: its contract, its words, its errors."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import SETTINGS
from rhirl.cli import GROUPS, VERBS, main
from rhirl.demos import load_demos, write_demos
from rhirl.experiments.seeds import EVALUATION, episode_seeds

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run, made by the command line."""
    path = tmp_path_factory.mktemp("cli") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("rhirl.experiments.train"), "EVALUATION_EPISODES", 1)
        main(["train", "pendulum", "--episodes", "3", "--out", str(path), "--set", *SETTINGS])
    return path


def strict_json(text: str) -> Any:
    """Parse exactly one JSON document; NaN and infinity are no JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def fails(capsys: Captured, *words: str) -> str:
    """Run a command that must fail with exit code 2 and one sentence on standard error."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as error:
        main(words)
    said = capsys.readouterr()
    assert error.value.code == 2
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err


def test_tasks_in_json(capsys: Captured) -> None:
    main(["tasks", "--json"])
    said = capsys.readouterr()
    rows = {row["task"]: row for row in strict_json(said.out)}
    assert said.err == ""
    pendulum = rows["pendulum"]
    assert (pendulum["env_id"], pendulum["T"]) == ("Pendulum-v1", 100)
    assert (pendulum["observation_dim"], pendulum["control_dim"]) == (3, 1)
    assert pendulum["expert_return"] > pendulum["random_return"]
    assert pendulum["paper_ratio"] == pytest.approx(1.0645, abs=1e-3)
    assert {"default", "paper"} <= pendulum["presets"].keys()


def test_tasks_for_people(capsys: Captured) -> None:
    main(["tasks"])
    said = capsys.readouterr()
    assert said.out == ""
    assert "pendulum" in said.err


def test_training_leaves_the_run_directory_of_the_contract(run: Path) -> None:
    names = {path.name for path in run.iterdir()}
    assert {"config.json", "meta.json", "metrics.jsonl", "checkpoints", "cost.safetensors"} <= names
    lines = [strict_json(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [20, 40, 60, 80]
    config = strict_json((run / "config.json").read_text())
    assert (config["task"], config["method"], config["preset"], config["demos"]) == (
        "pendulum",
        "rhirl",
        "default",
        "bundled",
    )
    assert list(run.rglob("*.tmp")) == []


def test_evaluation_in_json_keeps_the_contract(run: Path, capsys: Captured) -> None:
    main(["eval", str(run), "--episodes", "3", "--seed", "4", "--json"])
    said = capsys.readouterr()
    result = strict_json(said.out)
    assert {
        "task",
        "method",
        "noise",
        "episodes",
        "seed",
        "return_mean",
        "return_std",
        "returns",
        "expert_return",
        "random_return",
        "ratio",
        "score",
    } <= result.keys()
    assert (result["task"], result["method"], result["noise"]) == ("pendulum", "rhirl", 0)
    assert (result["episodes"], result["seed"], len(result["returns"])) == (3, 4, 3)
    assert result["return_mean"] == pytest.approx(np.mean(result["returns"]))
    assert result["return_std"] == pytest.approx(np.std(result["returns"]))
    span = result["expert_return"] - result["random_return"]
    assert result["score"] == pytest.approx((result["return_mean"] - result["random_return"]) / span)
    ratio = (result["return_mean"] + 600) / (result["expert_return"] + 600)
    assert result["ratio"] == pytest.approx(max(0.0, ratio))
    kept = [strict_json(path.read_text()) for path in (run / "eval").iterdir()]
    assert result in kept


def test_evaluation_is_repeatable_and_its_seeds_and_noise_matter(run: Path, capsys: Captured) -> None:
    found = []
    for words in ([], [], ["--seed", "1"], ["--noise", "0.3"]):
        main(["eval", str(run), "--episodes", "2", "--json", *words])
        found.append(strict_json(capsys.readouterr().out)["returns"])
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert found[0] != found[3]


def test_two_workers_find_the_returns_of_one(run: Path, capsys: Captured) -> None:
    found = []
    for workers in ("1", "2"):
        main(["eval", str(run), "--episodes", "5", "--noise", "0.2", "--workers", workers, "--json"])
        found.append(strict_json(capsys.readouterr().out))
    assert found[0] == found[1]
    assert len(set(found[0]["returns"])) == 5


def test_evaluating_with_no_worker_is_an_error(run: Path, capsys: Captured) -> None:
    assert "workers must be 1 or more" in fails(capsys, "eval", str(run), "--workers", "0")


def test_evaluation_starts_where_training_never_did(run: Path) -> None:
    assert min(episode_seeds(EVALUATION, 0, 50)) >= 2**31


def test_evaluation_for_people(run: Path, capsys: Captured) -> None:
    main(["eval", str(run), "--episodes", "2"])
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(r"score", said.err)


def test_a_report_is_one_file_that_needs_nothing_else(run: Path, tmp_path: Path, capsys: Captured) -> None:
    pictures = tmp_path / "not" / "there" / "yet"
    main(["report", str(run), "--pictures", str(pictures)])
    assert "report.html" in capsys.readouterr().err
    assert (pictures / "pendulum-how-it-learned.png").read_bytes().startswith(b"\x89PNG")
    page = (run / "report.html").read_text()
    assert page.count("data:image/") >= 3
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert not re.search(r"@import|url\(\s*['\"]?https?:", page)


def test_training_off_a_terminal_is_quiet_and_log_friendly(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("rhirl.experiments.train"), "EVALUATION_EPISODES", 1)
    for forced in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(forced, raising=False)
    words = ["train", "pendulum", "--episodes", "3", "--out", str(tmp_path / "run"), "--set", *SETTINGS]
    main(words)
    said = capfd.readouterr()
    assert said.out == ""
    assert "\x1b" not in said.err
    assert "\r" not in said.err
    lines = said.err.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["20/80", "40/80", "60/80", "80/80"]
    for word in ("return", "score", "loss", "ESS", "spread", "executed", "simulated", "steps/s"):
        assert word in lines[0]
    assert f"rhirl eval {tmp_path / 'run'}" in said.err
    words[words.index(str(tmp_path / "run"))] = str(tmp_path / "quiet")
    main([*words, "--quiet"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["train", "pendelum"], "no task 'pendelum'; there are"),
        (["train", "pendulum", "--preset", "best"], "no preset 'best'; there are default, paper"),
        (["train", "pendulum", "--set", "planner.Q=3"], "no setting planner.Q; there are"),
        (["train", "pendulum", "--set", "lr=fast"], "lr"),
        (["train", "pendulum", "--set", "lr"], "name=value"),
        (["train", "pendulum", "--noise", "0.3"], "no demonstrations of pendulum"),
        (["train", "pendulum", "--episodes", "21"], "21 episodes asked for, but there are 20"),
        (["train", "pendulum", "--demos", "nowhere.npz"], "nowhere.npz: no such file"),
        (["eval", "nowhere"], "nowhere is not a run directory"),
        (["report", "nowhere"], "nowhere "),
        (["train", "pendulum", "--out", "nowhere", "--resume"], "nowhere is not a run directory"),
        (["demos", "collect", "pendelum"], "no task 'pendelum'"),
        (["demos", "inspect", "pendelum"], "pendelum"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(words: list[str], complaint: str, capsys: Captured) -> None:
    said = fails(capsys, *words)
    assert said.startswith("error: ")
    assert complaint in said
    assert len(said.strip().splitlines()) == 1


def test_a_run_is_not_overwritten(run: Path, capsys: Captured) -> None:
    assert "--resume" in fails(capsys, "train", "pendulum", "--out", str(run))


@pytest.mark.parametrize("episodes", ["0", "-3", "10001"])
def test_evaluating_no_episodes_is_an_error(run: Path, episodes: str, capsys: Captured) -> None:
    assert "episodes" in fails(capsys, "eval", str(run), "--episodes", episodes)


def test_demonstrations_of_other_versions_are_refused_unless_the_person_insists(
    tmp_path: Path, capsys: Captured
) -> None:
    demos = load_demos("pendulum", episodes=3)
    demos.meta.versions["gymnasium"] = "0.1"
    write_demos(demos, tmp_path / "old.npz")
    said = fails(capsys, "train", "pendulum", "--demos", str(tmp_path / "old.npz"), "--out", str(tmp_path / "run"))
    assert "made with gymnasium 0.1" in said
    assert "--force" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words", [["nonsense"], ["train"], ["train", "pendulum", "--colour", "red"], ["demos", "x"]]
)
def test_words_nobody_knows_exit_with_2(words: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as error:
        main(words)
    assert error.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "verb", [[verb] for verb in VERBS] + [[group, verb] for group in GROUPS for verb in GROUPS[group][1]]
)
def test_every_verb_explains_itself(verb: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as done:
        main([*verb, "--help"])
    assert done.value.code in (0, None)
    said = capsys.readouterr().out
    assert f"rhirl {' '.join(verb)}" in said
    assert len(said.split()) > 15


def test_help_lists_every_verb(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    for verb in [*VERBS, *GROUPS]:
        assert verb in said


def test_demonstrations_are_collected_and_inspected(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "mine.npz"
    main(["demos", "collect", "pendulum", "--noise", "0.2", "--episodes", "2", "--out", str(path)])
    assert str(path) in capsys.readouterr().err
    main(["demos", "inspect", str(path), "--json"])
    summary = strict_json(capsys.readouterr().out)
    assert {
        "task",
        "noise",
        "episodes",
        "length",
        "observation_dim",
        "return_mean",
        "return_std",
        "returns",
        "versions",
        "sha256",
    } <= summary.keys()
    assert (summary["task"], summary["noise"], summary["episodes"]) == ("pendulum", 0.2, 2)
    assert summary["observation_dim"] == 3
    main(["demos", "inspect", "pendulum", "--json"])
    assert strict_json(capsys.readouterr().out)["episodes"] == 20
