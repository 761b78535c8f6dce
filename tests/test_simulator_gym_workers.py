"""Worker processes: the same bits however many there are, replaced when they die, gone when the parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gym_environments import Mine, Mortal, Walk, Witness
from rhirl.simulators import gym_workers
from rhirl.simulators.gym import GymSimulator, RolloutError
from rhirl.simulators.gym_model import Recipe
from rhirl.simulators.gym_workers import why_not_sendable

V = np.random.default_rng(0).uniform(-1, 1, (7, 12, 1))

ASLEEP = """
import sys
from functools import partial
import numpy as np
from gym_environments import Sleeper
from rhirl.simulators.gym import GymSimulator

if __name__ == "__main__":
    simulator = GymSimulator(partial(Sleeper, sys.argv[1]), workers=2)
    state = simulator.reset(0)
    simulator.rollout(state, np.full((2, 1, 1), -1 / 3))
    simulator.rollout(state, np.ones((1, 9, 1)))
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[GymSimulator]:
    with GymSimulator(Walk, workers=2) as simulator:
        yield simulator


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, even if nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_any_number_of_workers_gives_the_same_bits(pair: GymSimulator) -> None:
    alone = GymSimulator(Walk, workers=0)
    state = alone.reset(3)
    with GymSimulator(Walk, workers=3) as three:
        for part in (V, V[:1], V[:0], V[:, :1]):
            expected = alone.rollout(state, part, seed=8)
            for simulator in (pair, three):
                rollout = simulator.rollout(state, part, seed=8)
                assert rollout.observations.tobytes() == expected.observations.tobytes()
                assert rollout.observations.shape == expected.observations.shape
                assert rollout.valid.tobytes() == expected.valid.tobytes()


def test_an_idle_worker_that_was_killed_is_replaced(pair: GymSimulator) -> None:
    state = pair.reset(0)
    before = pair.rollout(state, V)
    for process in multiprocessing.active_children():
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    assert pair.rollout(state, V).observations.tobytes() == before.observations.tobytes()


def test_a_worker_killed_inside_a_rollout_is_replaced_and_its_part_repeated(tmp_path: Path) -> None:
    alone = GymSimulator(Walk, workers=0)
    expected = alone.rollout(alone.reset(0), V, seed=2)
    with GymSimulator(partial(Mortal, tmp_path / "died", once=True), workers=1, check=False) as simulator:
        rollout = simulator.rollout(simulator.reset(0), V, seed=2)
    assert (tmp_path / "died").exists()
    assert rollout.observations.tobytes() == expected.observations.tobytes()


def test_a_worker_that_always_dies_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gym_workers, "ATTEMPTS", 1)
    others = set(multiprocessing.active_children())
    with GymSimulator(partial(Mortal, tmp_path / "died", once=False), workers=1, check=False) as simulator:
        with pytest.raises(RuntimeError, match=r"died 1 times on the same rollouts \(exit code -9\)"):
            simulator.rollout(simulator.reset(0), V)
        assert set(multiprocessing.active_children()) == others


def test_an_exception_in_a_worker_names_environment_rollout_and_step() -> None:
    controls = np.full((4, 12, 1), -1 / 3)
    controls[3] = 1
    with GymSimulator(Mine, workers=2, check=False) as simulator:
        state = simulator.reset(0)
        with pytest.raises(RolloutError, match=r"Mine raised ValueError.* \(step \d of rollout 3\)"):
            simulator.rollout(state, controls)
        assert simulator.rollout(state, controls[:3]).valid.all()


def test_workers_do_not_load_jax() -> None:
    with GymSimulator(Witness, workers=1, check=False) as simulator:
        assert (simulator.rollout(simulator.reset(0), V).observations[:, 1:, 1] == 0).all()


def test_functions_that_workers_cannot_import_are_refused() -> None:
    with pytest.raises(ValueError, match="top level of a module"):
        GymSimulator(lambda: Walk(), workers=2)
    with pytest.raises(ValueError, match="0 or more"):
        GymSimulator(Walk, workers=-1)
    assert GymSimulator(lambda: Walk(), workers=0).exact is True


def test_by_default_what_cannot_be_sent_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rhirl.simulators.gym.default_count", lambda: 4)
    assert GymSimulator(Walk, check=False).workers == 4
    with pytest.warns(UserWarning, match="rollouts run in this process"):
        assert GymSimulator(lambda: Walk(), check=False).workers == 0


def test_a_program_that_no_process_can_read_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert why_not_sendable(Recipe(Walk)) == ""
    monkeypatch.setattr(main, "__file__", "<stdin>", raising=False)
    assert "<stdin>" in why_not_sendable(Recipe(Walk))


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_no_worker_outlives_its_parent(how: str, tmp_path: Path) -> None:
    script = tmp_path / "asleep.py"
    script.write_text(ASLEEP)
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], env=env, start_new_session=True, stderr=subprocess.PIPE
    ) as parent:
        try:
            assert wait_for(lambda: any(tmp_path.glob("busy-*")))
            workers = [int(path.name.removeprefix("alive-")) for path in tmp_path.glob("alive-*")]
            assert len(workers) == 2
            assert not any(map(is_gone, workers))
            if how == "killed":
                parent.kill()
            else:
                os.killpg(parent.pid, signal.SIGINT)
            assert wait_for(lambda: all(map(is_gone, workers)))
            _, stderr = parent.communicate(timeout=60)
            assert how == "killed" or stderr.decode().rstrip().endswith("KeyboardInterrupt")
        finally:
            parent.kill()
