"""Runs that are stopped, killed or damaged go on to the very bits where an undisturbed run ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from conftest import SETTINGS
from rhirl.cli import main
from rhirl.experiments import CheckpointError, RunConfig, RunDirectory, RunError, train
from rhirl.experiments import display as display_module
from rhirl.experiments.checkpoint import KEEP, checkpoints, latest, load_checkpoint, save_checkpoint
from rhirl.experiments.interrupt import StoppedError
from rhirl.experiments.plan import plan_run
from rhirl.experiments.train import LOG_EVERY, Progress

TRAIN = import_module("rhirl.experiments.train")


class Crash(BaseException):
    """The process dies here; nothing may catch it."""


class Outcome(NamedTuple):
    """Everything a run leaves behind that must not depend on how often it was interrupted."""

    cost: bytes
    checkpoint: bytes
    metrics: list[dict[str, Any]]


def plan() -> RunConfig:
    return plan_run("pendulum", noise=0.2, episodes=3, overrides=SETTINGS)


def outcome(run: RunDirectory) -> Outcome:
    metrics = [
        {key: value for key, value in line.items() if not key.startswith("time/")} for line in run.read_metrics()
    ]
    return Outcome(run.cost.read_bytes(), checkpoints(run.checkpoints)[-1].read_bytes(), metrics)


@pytest.fixture(autouse=True)
def quick_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TRAIN, "EVALUATION_EPISODES", 1)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """How the run ends when nobody disturbs it."""
    run = RunDirectory(tmp_path_factory.mktemp("straight") / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TRAIN, "EVALUATION_EPISODES", 1)
        train(run, plan())
    return outcome(run)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def crash_at(iteration: int) -> Callable[[Progress], None]:
    def show(progress: Progress) -> None:
        if progress.iteration == iteration:
            raise Crash

    return show


def finish(run: RunDirectory, **kwargs: Any) -> Outcome:
    """Go on as a person would: resume what is a run, begin what is none."""
    train(run, plan(), resume=run.exists(), **kwargs)
    return outcome(run)


def test_the_undisturbed_run_is_logged_evaluated_and_kept(straight: Outcome) -> None:
    assert [line["iteration"] for line in straight.metrics] == [20, 40, 60, 80]
    last = straight.metrics[-1]
    assert last["steps/executed"] == 160
    assert last["steps/simulated"] == 160 * 8 * 5
    assert last["sim/invalid"] == 0
    for line in straight.metrics:
        assert {"train/loss", "mppi/ess", "mppi/lambda", "mppi/spread", "eval/return", "eval/score"} <= line.keys()
        assert all(np.isfinite(value) for value in line.values())


def test_twice_in_a_row_ends_in_the_same_bits(run: RunDirectory, straight: Outcome) -> None:
    assert finish(run) == straight


@pytest.mark.parametrize("at", [LOG_EVERY, 2 * LOG_EVERY])
def test_a_run_in_two_halves_equals_the_whole(run: RunDirectory, straight: Outcome, at: int) -> None:
    with pytest.raises(Crash):
        train(run, plan(), show=crash_at(at))
    assert outcome(run).metrics == straight.metrics[: at // LOG_EVERY]
    assert finish(run) == straight


def test_resuming_a_finished_run_changes_nothing(run: RunDirectory, straight: Outcome) -> None:
    finish(run)
    assert finish(run) == straight


@pytest.mark.parametrize(("function", "deadlines"), [("replace", (1, 2, 3, 4, 5, 11)), ("fsync", (1, 4, 5))])
def test_a_crash_at_any_moment_of_any_save_leaves_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, straight: Outcome, function: str, deadlines: tuple[int, ...]
) -> None:
    """Every write goes through both calls: at first checkpoint, meta, config; then cost, checkpoint by turns."""
    original, calls = getattr(os, function), 0

    def dying(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == deadline:
            raise Crash
        return original(*args)

    for deadline in deadlines:
        run, calls = RunDirectory(tmp_path / f"run{deadline}"), 0
        with monkeypatch.context() as patch:
            patch.setattr(os, function, dying)
            with pytest.raises(Crash):
                train(run, plan())
        if run.exists():
            _, _, refused = latest(run.checkpoints, fresh_state())
            assert refused == []
        assert finish(run) == straight


CHILD = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
from rhirl.experiments import RunDirectory, train
from rhirl.experiments.plan import plan_run
from rhirl.learning import RHIRL

path, function, deadline, *settings = sys.argv[1:]
owner, calls = RHIRL if function == "step" else os, 0
original = getattr(owner, function)

def killing(*args):
    global calls
    calls += 1
    if calls == int(deadline):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args)

setattr(owner, function, killing)
import_module("rhirl.experiments.train").EVALUATION_EPISODES = 1
run = RunDirectory(Path(path))
train(run, plan_run("pendulum", noise=0.2, episodes=3, overrides=settings), resume=run.exists())
"""


def test_kill_9_at_random_moments_and_inside_saves(run: RunDirectory, straight: Outcome, tmp_path: Path) -> None:
    """The same run is killed in the middle of a step, and then while the next checkpoint is written to disk."""
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    compiled = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    reached = []
    for function, deadline in (("step", 33), ("fsync", 3)):
        command = [sys.executable, str(script), str(run.path), function, str(deadline), *SETTINGS]
        child = subprocess.run(command, capture_output=True, env={**os.environ, **compiled}, check=False)
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
        state, _, refused = latest(run.checkpoints, fresh_state())
        assert refused == []
        reached.append(int(state.iteration))
    assert reached == [20, 20]
    assert finish(run) == straight


def fresh_state() -> Any:
    from rhirl.experiments.plan import find_demos
    from rhirl.experiments.presets import from_dict
    from rhirl.learning import RHIRL
    from rhirl.simulators.pendulum import PendulumSimulator

    return RHIRL(PendulumSimulator(), find_demos("pendulum", 0.2, episodes=3), from_dict(plan().hyper)).state


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-40] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, empty, flip])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(
    run: RunDirectory, straight: Outcome, damage: Callable[[Path], None]
) -> None:
    with pytest.raises(Crash):
        train(run, plan(), show=crash_at(60))
    newest = checkpoints(run.checkpoints)[-1]
    damage(newest)
    warnings: list[str] = []
    assert finish(run, warn=warnings.append) == straight
    assert len(warnings) == 1
    assert str(newest) in warnings[0]
    assert "using 0000000040.safetensors instead" in warnings[0]


def test_if_every_checkpoint_is_damaged_the_error_says_so(run: RunDirectory) -> None:
    with pytest.raises(Crash):
        train(run, plan(), show=crash_at(20))
    for path in checkpoints(run.checkpoints):
        flip(path)
    with pytest.raises(CheckpointError, match=r"no usable checkpoint .*damaged"):
        train(run, plan(), resume=True)


def test_every_flipped_bit_of_a_checkpoint_is_noticed(tmp_path: Path) -> None:
    tree = {"a": np.arange(6, dtype=np.float32), "b": (np.ones((2, 3)), np.zeros((), np.int64))}
    path = save_checkpoint(tree, tmp_path, 7)
    whole = path.read_bytes()
    for at in range(len(whole)):
        content = bytearray(whole)
        content[at] ^= 1 << (at % 8)
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"0000000007\.safetensors: (damaged|truncated)"):
            load_checkpoint(path, tree)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="truncated"):
            load_checkpoint(path, tree)
    path.write_bytes(whole)
    loaded = load_checkpoint(path, tree)
    np.testing.assert_array_equal(loaded["a"], tree["a"])
    assert loaded["b"][1].shape == ()


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    for step in range(0, 100, 20):
        save_checkpoint({"a": np.full(3, step)}, tmp_path, step)
    assert [int(path.stem) for path in checkpoints(tmp_path)] == [40, 60, 80]
    assert len(checkpoints(tmp_path)) == KEEP
    state, path, _ = latest(tmp_path, {"a": np.zeros(3)})
    assert (int(path.stem), state["a"].tolist()) == (80, [80, 80, 80])


def test_a_log_line_that_a_crash_cut_short_is_dropped(run: RunDirectory, straight: Outcome) -> None:
    with pytest.raises(Crash):
        train(run, plan(), show=crash_at(40))
    with open(run.metrics, "a") as log:
        log.write('{"iteration": 60, "train/lo')
    assert finish(run) == straight


def test_a_run_is_never_overwritten(run: RunDirectory) -> None:
    with pytest.raises(Crash):
        train(run, plan(), show=crash_at(20))
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="holds a run already; go on with --resume, or choose another --out"):
        train(run, plan())
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_resuming_what_is_no_run_is_an_error(run: RunDirectory) -> None:
    with pytest.raises(RunError, match="is not a run directory"):
        train(run, plan(), resume=True)
    run.path.mkdir()
    (run.path / "config.json").write_text("[1, 2")
    with pytest.raises(RunError, match=r"config\.json cannot be read"):
        train(run, plan(), resume=True)


def interrupt_at(monkeypatch: pytest.MonkeyPatch, iteration: int, times: int = 1) -> None:
    """Press Ctrl-C while the display shows an iteration."""

    def pressing(self: Any, progress: Progress) -> None:
        if progress.iteration == iteration:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(display_module.Display, "__call__", pressing)


def command(run: RunDirectory, *more: str) -> list[str]:
    settings = ["--set", *SETTINGS]
    return ["train", "pendulum", "--noise", "0.2", "--episodes", "3", "--out", str(run.path), *settings, *more]


def test_ctrl_c_saves_says_how_to_go_on_and_loses_nothing(
    run: RunDirectory, straight: Outcome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 20)
        with pytest.raises(SystemExit) as stopped:
            main(command(run))
    assert stopped.value.code == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert "stopped at iteration 40 of 80; everything is saved" in said.err
    assert f"rhirl train pendulum --out {run.path} --resume" in said.err
    assert signal.getsignal(signal.SIGINT) is handler
    main(["train", "pendulum", "--out", str(run.path), "--resume"])
    assert outcome(run) == straight


def test_ctrl_c_twice_stops_at_once_and_the_run_can_still_go_on(
    run: RunDirectory, straight: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 20, times=2)
        with pytest.raises(KeyboardInterrupt):
            main(command(run))
    assert signal.getsignal(signal.SIGINT) is handler
    assert finish(run) == straight


def test_termination_is_a_request_to_stop_too(run: RunDirectory, straight: Outcome) -> None:
    def show(progress: Progress) -> None:
        if progress.iteration == 40:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StoppedError, match="stopped at iteration"):
        train(run, plan(), show=show)
    assert finish(run) == straight


def test_training_works_outside_the_main_thread(run: RunDirectory, straight: Outcome) -> None:
    thread = threading.Thread(target=train, args=(run, plan()))
    thread.start()
    thread.join()
    assert outcome(run) == straight


def test_the_run_directory_says_what_was_done_and_with_what(run: RunDirectory) -> None:
    with pytest.raises(Crash):
        train(run, plan(), show=crash_at(20))
    config = json.loads((run.path / "config.json").read_text())
    assert (config["task"], config["noise"], config["episodes"]) == ("pendulum", 0.2, 3)
    assert config["hyper"]["planner"]["M"] == 8
    meta = json.loads((run.path / "meta.json").read_text())
    assert {"versions", "python", "cores", "demos_sha256"} <= meta.keys()
    assert len(meta["demos_sha256"]) == 64
    assert {"jax", "numpy", "gymnasium"} <= meta["versions"].keys()
