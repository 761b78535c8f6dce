"""Grids that are killed, repeated or wrong: the finished grid is the same as one done in turn, undisturbed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from rhirl.cli import main
from rhirl.experiments.fingerprint import fingerprint
from rhirl.experiments.grid import read_spec
from rhirl.experiments.grid.cells import Cell, run_cell
from rhirl.experiments.grid.engines import Ended, InTurn
from rhirl.experiments.grid.progress import Watch, read_progress
from rhirl.experiments.grid.schedule import DEATHS, check, run_grid
from rhirl.experiments.interrupt import StoppedError
from rhirl.experiments.run import RunDirectory, RunError
from rhirl.machine import claim_cores, cores, thread_environment

CELLS = read_spec("smoke").cells
FIRST = CELLS[0]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smoke grid, one cell after the other in this process."""
    root = tmp_path_factory.mktemp("straight")
    outcome = run_grid(CELLS, root, InTurn(root))
    assert (outcome.skipped, outcome.finished, outcome.failed) == ((), CELLS, ())
    return root


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which processes share what they compile."""
    folder = str(tmp_path_factory.mktemp("jax"))
    return {**os.environ, "JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def start(env: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    """Start a grid on Ray in a process of its own, as a person would."""
    pytest.importorskip("ray", reason="grids run on Ray: pip install 'rhirl[cluster]'")
    command = [sys.executable, "-c", f"from rhirl.cli import main; main({['grid', *words]})"]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)


def training_worker(cell: Cell, root: Path, driver: subprocess.Popen[bytes]) -> int:
    """Wait until a cell has logged its first iterations, and return who works on it."""
    run = RunDirectory(root / cell.folder)
    while not run.read_metrics():
        assert driver.poll() is None, driver.communicate()[1].decode()
        time.sleep(0.005)
    seen = read_progress(run.path)
    assert seen is not None
    return seen.pid


@pytest.mark.slow
def test_a_worker_is_killed_and_the_grid_on_ray_is_the_same(
    straight: Path, tmp_path: Path, compiled: dict[str, str]
) -> None:
    driver = start(compiled, "smoke", "--out", str(tmp_path), "--workers", "2")
    worker = training_worker(FIRST, tmp_path, driver)
    assert worker != driver.pid
    os.kill(worker, signal.SIGKILL)
    assert not FIRST.is_done(tmp_path)
    said = driver.communicate()[1].decode()
    assert driver.returncode == 0, said
    assert f"goes on: {FIRST}: its worker died" in said
    assert f"{len(CELLS)} finished, 0 were done before, 0 failed" in said
    assert fingerprint(tmp_path) == fingerprint(straight)


@pytest.mark.slow
def test_the_driver_is_killed_with_its_workers_and_the_next_one_goes_on(
    straight: Path, tmp_path: Path, compiled: dict[str, str]
) -> None:
    spec = tmp_path / "one.toml"
    settings = ", ".join(f'"{setting}"' for setting in FIRST.settings)
    block = '[[runs]]\ntasks = ["pendulum"]\nmethods = ["rhirl"]\nseeds = 1\ndemonstrations = 3\n'
    spec.write_text(f"episodes = 2\n{block}variants.small = [{settings}]\n")
    root = tmp_path / "runs"
    driver = start(compiled, str(spec), "--out", str(root))
    training_worker(FIRST, root, driver)
    driver.kill()
    driver.communicate()
    assert not FIRST.is_done(root)
    outcome = run_grid([FIRST], root, InTurn(root))  # waits for the orphaned worker to end
    assert outcome.finished == (FIRST,)
    assert fingerprint(root / FIRST.folder) == fingerprint(straight / FIRST.folder)


def test_a_finished_cell_is_trimmed_to_the_evidence(straight: Path) -> None:
    for cell in CELLS:
        names = {path.name for path in (straight / cell.folder).iterdir()}
        learned = "cost.safetensors" if cell.method == "rhirl" else "policy.safetensors"
        assert names == {"config.json", "meta.json", "metrics.jsonl", learned, "eval", "timing.json"}
        (evaluation,) = (straight / cell.folder / "eval").iterdir()
        assert evaluation.name == f"noise{cell.noise:g}-seed{cell.seed}.json"
        timing = json.loads((straight / cell.folder / "timing.json").read_text())
        assert timing["training_s"] > 0
        assert timing["evaluation_s"] > 0
        assert timing["processor"]


def test_what_is_done_is_not_touched_again(straight: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in straight.rglob("*")}
    outcome = run_grid(CELLS, straight, InTurn(straight))
    assert (outcome.skipped, outcome.finished) == (CELLS, ())
    assert {path: path.stat().st_mtime_ns for path in straight.rglob("*")} == before


def test_a_finished_run_is_only_evaluated_where_that_is_missing(
    straight: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(*args: object, **kwargs: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(import_module("rhirl.experiments.grid.cells"), "train", train)
    timing = json.loads((straight / FIRST.folder / "timing.json").read_text())
    cell = replace(FIRST, levels=(0.0, 0.5))
    assert not cell.is_done(straight)
    run_cell(cell, straight)
    assert cell.is_done(straight)
    path = straight / cell.folder / "eval/noise0.5-seed0.json"
    result = json.loads(path.read_text())
    assert (result["noise"], result["learned_at_noise"], result["episodes"]) == (0.5, 0.0, 2)
    after = json.loads((straight / cell.folder / "timing.json").read_text())
    assert after["training_s"] == timing["training_s"]
    assert after["evaluation_s"] > timing["evaluation_s"]
    path.unlink()


def test_a_directory_with_other_settings_is_left_alone(straight: Path) -> None:
    other = replace(FIRST, settings=(*FIRST.settings, "lr=0.5"))
    (error,) = check([FIRST, other], straight)
    assert "other settings (hyper.lr was 0.0003, now 0.5): move it away" in str(error)


def test_mistakes_are_found_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no setting planner"):
        check([FIRST, replace(FIRST, settings=("planner.Q=1",))], tmp_path)
    assert list(tmp_path.iterdir()) == []


class Rehearsed:
    """An engine whose cells end as it was told."""

    slots = 1

    def __init__(self, *ends: tuple[str | None, bool]) -> None:
        self.ends = list(ends)
        self.submitted: list[Cell] = []
        self.closed = False

    def submit(self, cell: Cell) -> None:
        self.submitted.append(cell)

    def wait(self) -> Sequence[Ended]:
        error, died = self.ends.pop(0)
        return [Ended(self.submitted[-1], error, died)]

    def close(self) -> None:
        self.closed = True


def test_a_cell_that_fails_is_tried_again_so_often_and_then_reported(tmp_path: Path) -> None:
    engine = Rehearsed(*[("ValueError: no", False)] * 3)
    outcome = run_grid([FIRST], tmp_path, engine, retries=2)
    assert len(engine.submitted) == 3
    assert engine.closed
    assert outcome.failed == (Ended(FIRST, "ValueError: no"),)


def test_a_cell_that_succeeds_at_last_is_no_failure(tmp_path: Path) -> None:
    outcome = run_grid([FIRST], tmp_path, Rehearsed(("ValueError: no", False), (None, False)), retries=1)
    assert (outcome.finished, outcome.failed) == ((FIRST,), ())


def test_dying_is_not_failing_but_not_for_ever(tmp_path: Path) -> None:
    engine = Rehearsed(*[("killed", True)] * (DEATHS + 1))
    assert run_grid([FIRST], tmp_path, engine, retries=0).failed[0].died
    assert len(engine.submitted) == DEATHS + 1


def test_a_failure_is_written_down_told_and_makes_the_command_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(*args: object, **kwargs: object) -> None:
        raise ArithmeticError("the sun was in my eyes")

    monkeypatch.setattr(import_module("rhirl.experiments.grid.cells"), "train", train)
    with pytest.raises(SystemExit) as end:
        main(["grid", "smoke", "--out", str(tmp_path), "--seeds", "1", "--in-turn", "--retries", "1", "--json"])
    assert end.value.code == 1
    said = capsys.readouterr()
    failed = json.loads(said.out)["failed"]
    assert {one["error"] for one in failed} == {"ArithmeticError: the sun was in my eyes"}
    assert said.err.count("trying again") == len(failed)
    record = json.loads((tmp_path / FIRST.folder / "failure.json").read_text())
    assert "sun was in my eyes" in record["traceback"]


def test_stopping_one_cell_on_request_stops_the_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = []

    def train(run: RunDirectory, *args: object, **kwargs: object) -> None:
        begun.append(run.path)
        raise StoppedError("stopped at iteration 20 of 80; everything is saved")

    monkeypatch.setattr(import_module("rhirl.experiments.grid.cells"), "train", train)
    with pytest.raises(SystemExit) as end:
        main(["grid", "smoke", "--out", str(tmp_path), "--in-turn"])
    assert end.value.code == 130
    assert begun == [tmp_path / FIRST.folder]
    assert "Go on with: rhirl grid smoke" in capsys.readouterr().err


def test_a_dry_run_says_what_would_run_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["grid", "table2", "--out", str(tmp_path / "none"), "--dry-run", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert len(told["would_run"]) == len(read_spec("table2").cells)
    assert not (tmp_path / "none").exists()
    main(["grid", "smoke", "--out", str(tmp_path / "none"), "--dry-run"])
    assert f"{len(CELLS)} to run" in capsys.readouterr().err


def test_a_directory_that_somebody_works_in_is_not_entered(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / FIRST.folder
    folder.mkdir(parents=True)
    holder = os.open(folder, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        with pytest.raises(RunError, match="another process"):
            run_cell(FIRST, tmp_path, lock_patience=0.0)
    finally:
        os.close(holder)


def test_time_goes_on_counting_after_a_death(tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text(
        json.dumps(
            {"stage": "training", "done": 3, "total": 9, "seconds": {"training": 50.0}, "pid": 1, "host": "x"}
        )
    )
    watch = Watch(tmp_path)
    watch("training", 4, 9)
    seen = read_progress(tmp_path)
    assert seen is not None
    assert (seen.done, seen.total, seen.pid) == (4, 9, os.getpid())
    assert watch.spent["training"] >= 50.0


def test_a_run_that_others_trained_gets_no_timing(straight: Path, tmp_path: Path) -> None:
    shutil.copytree(straight / FIRST.folder, tmp_path / FIRST.folder)
    (tmp_path / FIRST.folder / "timing.json").unlink()
    shutil.rmtree(tmp_path / FIRST.folder / "eval")
    run_cell(FIRST, tmp_path)
    assert FIRST.is_done(tmp_path)
    assert not (tmp_path / FIRST.folder / "timing.json").exists()
    assert fingerprint(tmp_path / FIRST.folder) == fingerprint(straight / FIRST.folder)


def test_every_thread_count_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_mine=1")
    few, many = thread_environment(1), thread_environment(4)
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC"):
        assert (few[name], many[name]) == ("1", "4")
    assert few["XLA_FLAGS"] == "--xla_mine=1 --xla_cpu_multi_thread_eigen=false"


def test_cores_are_claimed_by_one_process_at_a_time(tmp_path: Path) -> None:
    code = (
        "import os, runpy, subprocess, sys\n"
        f"mine = runpy.run_path({cores.__file__!r})['claim_cores'](1)\n"
        "assert list(os.sched_getaffinity(0)) == mine\n"
        "print(*mine, flush=True)\n"
        "os.sched_setaffinity(0, range(os.cpu_count()))\n"
        "if len(sys.argv) == 1:\n"
        "    subprocess.run([sys.executable, __file__, 'child'], check=True)\n"
    )
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    (tmp_path / "claim.py").write_text(code)
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    found = subprocess.run([sys.executable, tmp_path / "claim.py"], env=env, capture_output=True, check=True)
    first, second = found.stdout.split()
    assert first != second


def test_more_cores_than_there_are_leave_a_process_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = os.sched_getaffinity(0)
    assert claim_cores(len(before) + 1) == []
    assert os.sched_getaffinity(0) == before
