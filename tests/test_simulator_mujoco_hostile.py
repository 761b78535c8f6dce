"""Nonsense in: a clear error or a masked rollout, never a wrong number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv

from rhirl.simulators.mujoco import MujocoSimulator
from test_simulator_mujoco import ANT, CHEETAH, HOPPER, WALKER, Task, run_episode

both_engines = pytest.mark.parametrize("task", [HOPPER, ANT], ids=lambda task: task.env_id)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@both_engines
def test_a_rollout_with_nan_is_masked_and_the_others_are_unharmed(task: Task) -> None:
    sim = task.simulator()
    state = run_episode(sim, 20, seed=0).states[-1]
    V = np.random.default_rng(0).uniform(-1, 1, (4, task.K, sim.control_dim))
    clean = sim.rollout(state, V).observations
    V[2, 3, 1] = np.nan
    rollout = sim.rollout(state, V)
    np.testing.assert_array_equal(rollout.valid, [True, True, False, True])
    np.testing.assert_array_equal(rollout.observations[[0, 1, 3]], clean[[0, 1, 3]])
    np.testing.assert_array_equal(rollout.observations[2], np.tile(sim.observe(state), (task.K + 1, 1)))
    with pytest.raises(ValueError, match="the control holds NaN"):
        sim.step(state, V[2, 3])


@both_engines
def test_huge_controls_are_clipped(task: Task) -> None:
    sim = task.simulator()
    state = sim.reset(0)
    V = np.random.default_rng(0).choice([-1.0, 1.0], (3, task.K, sim.control_dim))
    clipped = sim.rollout(state, V).observations
    for huge in (2.0, 1e30, 1e300, np.inf):
        rollout = sim.rollout(state, huge * V)
        assert rollout.valid.all()
        np.testing.assert_array_equal(rollout.observations, clipped)
    np.testing.assert_array_equal(sim.step(state, 1e300 * V[0, 0]), sim.step(state, V[0, 0]))


@both_engines
def test_a_model_that_blows_up_is_masked_and_silent(
    task: Task, empty_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sim = task.simulator(parameters={"actuator_gear": [1.0, 1e12]})
    state = sim.reset(0)
    V = np.full((4, task.K, sim.control_dim), 0.5)
    rollout = sim.rollout(state, V)
    np.testing.assert_array_equal(rollout.valid, [True, False, True, False])
    assert np.isfinite(rollout.observations).all()
    np.testing.assert_array_equal(rollout.observations[[0, 2]], task.simulator().rollout(state, V[:2]).observations)
    assert sim.rollout(state, np.zeros_like(V)).valid.all()
    assert not list(empty_folder.iterdir())
    assert capfd.readouterr() == ("", "")


@both_engines
@pytest.mark.parametrize("gear", [1e12, 1e50, 1e200])
def test_a_blow_up_in_the_last_step_is_noticed_too(task: Task, gear: float) -> None:
    sim = task.simulator(parameters={"actuator_gear": gear}, substeps=1, dtype=np.float32)
    assert not sim.rollout(sim.reset(0), np.full((2, 1, sim.control_dim), 0.5)).valid.any()


def test_a_step_that_diverges_is_an_error() -> None:
    sim = HOPPER.simulator()
    state = sim.reset(0)
    state[1 + 6] = 1e11  # the first velocity
    with pytest.raises(RuntimeError, match="diverged"):
        sim.step(state, np.zeros(3))
    assert not sim.rollout(state, np.zeros((2, 2, 3))).valid.any()


@both_engines
def test_no_samples_and_one_step(task: Task) -> None:
    sim = task.simulator()
    state = sim.reset(0)
    empty = sim.rollout(state, np.zeros((0, 5, sim.control_dim)))
    assert empty.observations.shape == (0, 6, task.n)
    assert empty.valid.shape == (0,)
    V = np.full((1, 1, sim.control_dim), 0.3)
    single = sim.rollout(state, V).observations
    assert single.shape == (1, 2, task.n)
    np.testing.assert_array_equal(single[0, 1], sim.observe(sim.step(state, V[0, 0])))


@both_engines
def test_the_number_of_samples_and_the_horizon_may_change_at_any_time(task: Task) -> None:
    sim = task.simulator()
    state = sim.reset(0)
    V = np.random.default_rng(0).uniform(-1, 1, (9, 8, sim.control_dim))
    whole = task.simulator().rollout(state, V).observations
    for M, K in [(2, 8), (9, 8), (1, 3), (5, 2), (9, 8)]:
        np.testing.assert_array_equal(sim.rollout(state, V[:M, :K]).observations, whole[:M, : K + 1])


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 4), (2, 0, 3)])
def test_controls_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    sim = HOPPER.simulator()
    with pytest.raises(ValueError, match="controls must have shape"):
        sim.rollout(sim.reset(0), np.zeros(shape))


def test_the_state_of_another_task_is_refused_even_where_the_size_agrees() -> None:
    walker, cheetah, hopper = WALKER.simulator(), CHEETAH.simulator(), HOPPER.simulator()
    state = cheetah.reset(0)
    assert state.shape == walker.reset(0).shape
    uses: list[Any] = [
        walker.observe,
        walker.terminated,
        lambda state: walker.step(state, np.zeros(6)),
        lambda state: walker.rollout(state, np.zeros((1, 1, 6))),
        lambda state: walker.restore(walker.make_env(), state),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="of another task"):
            use(state)
        with pytest.raises(ValueError, match="of another task"):
            use(hopper.reset(0))
    with pytest.raises(ValueError, match="this simulator is of Walker2d-v5"):
        walker.snapshot(cheetah.make_env())


def test_a_broken_state_is_refused() -> None:
    sim = HOPPER.simulator()
    state = sim.reset(0)
    state[3] = np.nan
    with pytest.raises(ValueError, match="diverged"):
        sim.rollout(state, np.zeros((1, 1, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "leapfrog"}, "integrator must be one of Euler, RK4"),
        ({"substeps": 0}, "substeps must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"parameters": {"weight": 2.0}}, "unknown parameter 'weight': use mass"),
        ({"parameters": {"mass": [1.0, 0.0]}}, "must be positive"),
        ({"parameters": {"gravity": [[1.0]]}}, "one finite scale factor"),
        ({"parameters": {"friction": np.nan}}, "one finite scale factor"),
        ({"parameters": {"geom_type": 2.0}}, "cannot be scaled"),
        ({"process_noise": -1.0}, "process_noise must be"),
        ({"process_noise": [1.0, 2.0]}, "process_noise must be"),
    ],
)
def test_wrong_options_say_what_is_right(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HOPPER.simulator(**options)


def test_an_environment_of_another_engine_is_refused() -> None:
    with pytest.raises(TypeError, match="not a Gymnasium MuJoCo environment"):
        MujocoSimulator("CartPole-v1")


class HiddenGear(HopperEnv):
    """Does to controls what no reader of the model can know."""

    def do_simulation(self, ctrl: Any, n_frames: int) -> None:
        super().do_simulation(0.5 * ctrl, n_frames)


def test_an_environment_that_hides_a_rule_is_noticed_at_once() -> None:
    gymnasium.register("HiddenGear-v0", entry_point=HiddenGear)
    try:
        with pytest.raises(ValueError, match="its own step and the simulator disagree"):
            MujocoSimulator("HiddenGear-v0")
    finally:
        gymnasium.registry.pop("HiddenGear-v0")
