"""What a planner may change in its rollouts: integrator, substeps, model parameters, noise, the start."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.simulators import ApproximateSimulator, exactly, expected_step
from rhirl.simulators.mujoco import MujocoSimulator
from test_simulator_mujoco import ANT, CHEETAH, HOPPER, HUMANOID, WALKER, Task, run_episode


def random_controls(sim: MujocoSimulator, M: int, K: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-1, 1, (M, K, sim.control_dim)).astype(np.float32)


# Median over 96 rollouts of max_i |x_i - exact x_i|, after one step and after K: twice what was measured.
@pytest.mark.parametrize(
    ("task", "integrator", "substeps", "after_one", "after_K"),
    [
        (HOPPER, "implicitfast", None, 8e-3, 8e-2),
        (HOPPER, "RK4", 1, 8e-5, 4e-2),
        (WALKER, "implicitfast", None, 0.3, 3.3),
        (WALKER, "RK4", 1, 0.03, 2.3),
        (ANT, "implicitfast", None, 2.3, 10.0),
        (ANT, "implicitfast", 10, 0.7, 5.5),
    ],
)
def test_the_error_of_a_planning_model_is_bounded(
    task: Task, integrator: str, substeps: int | None, after_one: float, after_K: float
) -> None:
    exact = task.simulator(contact_forces=False)
    planning = task.simulator(contact_forces=False, integrator=integrator, substeps=substeps)
    V = random_controls(exact, 12, task.K)
    errors = []
    for seed in range(8):
        state = run_episode(exact, 5 + 5 * seed, seed).states[-1]
        errors.append(
            np.abs(planning.rollout(state, V).observations - exact.rollout(state, V).observations).max(-1)
        )
        control = V[0, 0]
        np.testing.assert_array_equal(planning.step(state, control), exact.step(state, control))
    error = np.median(np.concatenate(errors), axis=0)
    assert error[0] == 0
    assert 0 < error[1] < after_one
    assert 0 < error[-1] < after_K


@pytest.mark.parametrize(("task", "options"), [(HOPPER, {}), (ANT, {}), (ANT, {"contact_forces": False})])
@pytest.mark.parametrize("name", ["mass", "friction", "gravity", "dof_damping"])
def test_every_simulation_runs_on_its_own_model(task: Task, options: dict[str, Any], name: str) -> None:
    factors = [1.0, 0.7, 1.4]
    sim = task.simulator(parameters={name: factors}, **options)
    state = run_episode(task.simulator(), 30, seed=0).states[-1]
    V = random_controls(sim, 5, 6)
    observations = sim.rollout(state, V).observations
    for i in range(5):
        np.testing.assert_array_equal(observations[i], gymnasium_with(task, sim, name, factors[i % 3], state, V[i]))
    same = np.repeat(V[:1], 3, axis=0)
    one, light, heavy = sim.rollout(state, same).observations[:, -1]
    assert np.abs(one - light).max() > 1e-6
    assert np.abs(one - heavy).max() > 1e-6


def gymnasium_with(
    task: Task, sim: MujocoSimulator, name: str, factor: float, state: NDArray[np.float64], controls: NDArray[Any]
) -> NDArray[np.float64]:
    """Step the environment itself after editing its model."""
    env = sim.make_env()
    env.reset(seed=0)
    inner: Any = env.unwrapped
    model = inner.model
    if name == "mass":
        model.body_mass *= factor
        model.body_inertia *= factor
    elif name == "gravity":
        model.opt.gravity *= factor
    else:
        getattr(model, {"friction": "geom_friction"}.get(name, name))[:] *= factor
    mujoco.mj_setConst(model, mujoco.MjData(model))
    sim.restore(env, state)
    observations = [inner._get_obs()] + [inner.step(sim.action(control))[0] for control in controls]
    return np.array(observations)[:, : sim.observation_shape[0]]


def test_a_body_falls_as_fast_as_gravity_says() -> None:
    sim = HOPPER.simulator(parameters={"gravity": [0.0, 1.0, 2.0]})
    x = np.zeros(11)
    x[0] = 5.0  # metres above the ground, nothing moving
    fall = sim.rollout(sim.state_from_observation(x), np.zeros((3, 10, 3))).observations[:, -1, 6]
    np.testing.assert_allclose(fall, [0.0, -9.81 * 0.08, -2 * 9.81 * 0.08], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("task", "options"), [(HOPPER, {}), (ANT, {}), (ANT, {"contact_forces": False})])
def test_process_noise_comes_from_the_seed_alone(task: Task, options: dict[str, Any]) -> None:
    one, two = (task.simulator(process_noise=3.0, threads=threads, **options) for threads in (1, 2))
    quiet = task.simulator(**options)
    state = run_episode(task.simulator(), 20, seed=0).states[-1]
    V = random_controls(one, 4, 5)
    V[1] = V[0]
    first = one.rollout(state, V, seed=7).observations
    np.testing.assert_array_equal(first, two.rollout(state, V, seed=7).observations)
    assert np.abs(first - two.rollout(state, V, seed=8).observations).max() > 1e-3
    assert np.abs(first[0] - first[1]).max() > 1e-3
    assert np.abs(first - quiet.rollout(state, V).observations).max() > 1e-3

    after = one.step(state, V[0, 0], seed=7)
    np.testing.assert_array_equal(one.observe(after), one.rollout(state, V[:1, :1], seed=7).observations[0, 1])
    assert np.abs(after - quiet.step(state, V[0, 0])).max() > 1e-3
    np.testing.assert_array_equal(expected_step(one)(state, V[0, 0]), quiet.step(state, V[0, 0]))


def test_process_noise_has_the_covariance_of_random_forces() -> None:
    """Forces w ~ N(0, σ²) for a time dt change the velocities by dt I⁻¹ w, I the mass matrix."""
    std = np.array([5.0, 4.0, 1.0, 0.5, 0.5, 0.5])
    x = np.array([5.0, 0.0, -0.8, -0.8, 0.1, 0, 0, 0, 0, 0, 0])  # in the air, away from the joints' limits
    sim = HOPPER.simulator(process_noise=std, parameters={"gravity": 0.0})
    state = sim.state_from_observation(x)
    velocities = sim.rollout(state, np.zeros((6000, 1, 3)), seed=1).observations[:, 1, 5:]

    inner: Any = sim.make_env().unwrapped
    sim.restore(inner, state)
    inertia = np.zeros((6, 6))
    mujoco.mj_fullM(inner.model, inner.data, inertia)
    push = inner.dt * np.linalg.inv(inertia) * std
    np.testing.assert_allclose(velocities.std(axis=0), np.sqrt((push**2).sum(axis=1)), rtol=0.05)
    assert np.abs(velocities.mean(axis=0) / velocities.std(axis=0)).max() < 0.05


@pytest.mark.parametrize("task", [HOPPER, WALKER, ANT, CHEETAH, HUMANOID], ids=lambda task: task.env_id)
def test_a_state_comes_back_from_its_observation(task: Task) -> None:
    sim = task.simulator()
    V = random_controls(sim, 3, 5)
    compared = 0
    for seed in range(6):
        true = run_episode(sim, 3, seed).states[-1]
        x = sim.observe(true)
        state = sim.state_from_observation(x)
        np.testing.assert_array_equal(sim.observe(state), x)
        assert sim.terminated(state) == sim.terminated(true)
        if task in (HOPPER, WALKER) and np.abs(x).max() == 10:
            continue  # a velocity that the observation clips is lost
        predicted, expected = sim.rollout(state, V).observations, sim.rollout(true, V).observations
        np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-6)
        compared += 1
    assert compared >= 3


def test_a_clipped_velocity_comes_back_from_a_state_nearby() -> None:
    """Hopper shows at most 10 rad/s. What turned faster a moment ago is taken to turn as fast as it did then."""
    sim = HOPPER.simulator()
    x = np.zeros(11)
    x[[0, -1]] = 1.2, 10.0
    slow = sim.state_from_observation(x)
    velocity = np.flatnonzero(slow == 10.0)
    fast = slow.copy()
    fast[velocity] = 12.5
    again = sim.state_from_observation(x, near=fast)
    assert again[velocity] == 12.5
    np.testing.assert_array_equal(sim.observe(again), x)
    assert sim.state_from_observation(x, near=slow)[velocity] == 10.0
    x[-1] = 9.0
    assert sim.state_from_observation(x, near=fast)[velocity] == 9.0


def test_a_state_comes_back_from_a_recorded_observation_without_forces() -> None:
    sim = ANT.simulator(contact_forces=False, dtype=np.float32)
    x = sim.observe(run_episode(sim, 30, seed=0).states[-1])
    assert x.dtype == np.float32
    np.testing.assert_array_equal(sim.observe(sim.state_from_observation(x)), x)


@pytest.mark.parametrize("env_id", ["Reacher-v5", "Pusher-v5"])
def test_an_observation_that_does_not_determine_the_state_is_refused(env_id: str) -> None:
    sim = MujocoSimulator(env_id)
    with pytest.raises(ValueError, match="no state follows"):
        sim.state_from_observation(sim.observe(sim.reset(0)))


@pytest.mark.parametrize(("task", "options"), [(HOPPER, {}), (ANT, {}), (ANT, {"contact_forces": False})])
def test_a_simulator_with_a_cheaper_model_has_an_exact_twin(task: Task, options: dict[str, Any]) -> None:
    own = task.simulator(**options)
    cheap = task.simulator(integrator="implicitfast", substeps=2, **options)
    state = run_episode(own, 30, seed=0).states[-1]
    V = random_controls(own, 3, 6)
    before = cheap.rollout(state, V).observations
    twin = exactly(cheap)
    assert isinstance(cheap, ApproximateSimulator)
    np.testing.assert_array_equal(twin.rollout(state, V).observations, own.rollout(state, V).observations)
    # The one it was made of goes on as before.
    np.testing.assert_array_equal(cheap.rollout(state, V).observations, before)
    assert np.abs(before - own.rollout(state, V).observations).max() > 0.01
