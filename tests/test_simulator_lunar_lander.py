"""The compiled lunar lander against the real one: the same bits from take-off to sleep."""

from __future__ import annotations

import json
import platform
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.simulators import follow, lead, where_lost
from rhirl.simulators.benchmark import Comparable, measure, measure_memory
from rhirl.simulators.lunar_lander import LanderState, LunarLanderSimulator
from rhirl.simulators.protocol import EnvironmentSimulator

pytest.importorskip("Box2D")

from rhirl.simulators.box2d import scene
from rhirl.simulators.box2d.island import sweep_islands
from rhirl.simulators.box2d.parity import fly, measure_parity
from rhirl.simulators.box2d.simulate import simulate
from rhirl.simulators.box2d.speed import measure_speed
from rhirl.simulators.box2d.state import make_scratch

SIMULATOR = LunarLanderSimulator(threads=1)
RESULTS = Path(__file__).parents[1] / "results" / "bench"
# Elsewhere Box2D may be compiled with fused multiply-add, which rounds differently.
ROUNDING = 0.0 if platform.machine() in ("x86_64", "AMD64") else 1e-2


def landing(seed: int, t: int) -> tuple[Any, LanderState]:
    """Fly the real environment for t controls of a noisy pilot; return it and the exact state it is in."""
    env = SIMULATOR.make_env().unwrapped
    controls = fly(env, seed, noise=0.3).controls[:t]
    env.reset(seed=seed)
    for u in controls:
        env.step(u)
    return env, SIMULATOR.replay(seed, controls)


def random_controls(M: int, K: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-1, 1, (M, K, 2)).astype(np.float32)


def assert_same(a: LanderState, b: LanderState) -> None:
    for name, x, y in zip(LanderState._fields, a, b, strict=True):
        np.testing.assert_array_equal(x, y, err_msg=name)


def test_it_is_an_environment_simulator() -> None:
    assert isinstance(SIMULATOR, EnvironmentSimulator)
    assert isinstance(SIMULATOR, Comparable)


def test_shapes_and_masses_are_box2ds_own() -> None:
    env: Any = SIMULATOR.make_env().unwrapped
    env.reset(seed=0)
    for i, body in enumerate([env.lander, *env.legs]):
        shape, n = body.fixtures[0].shape, scene.VERTEX_COUNT[i]
        np.testing.assert_array_equal(np.array(shape.vertices, np.float32), scene.VERTICES[i, :n])
        np.testing.assert_array_equal(np.array(shape.normals, np.float32), scene.NORMALS[i, :n])
        np.testing.assert_array_equal(np.array(body.localCenter, np.float32), scene.CENTERS[i])
        assert np.float32(1) / np.float32(body.mass) == scene.INV_MASS[i]
    lander_inertia = 1 / scene.INV_INERTIA[0] + env.lander.mass * float(scene.CENTERS[0] @ scene.CENTERS[0])
    assert lander_inertia == pytest.approx(env.lander.inertia, rel=1e-6)


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.0), (1, 0.3), (5, 1.0)])
def test_a_whole_episode_in_lockstep_has_the_same_bits(seed: int, noise: float) -> None:
    env: Any = SIMULATOR.make_env().unwrapped
    episode = fly(env, seed, noise)
    x, _ = env.reset(seed=seed)
    dispersion = np.random.default_rng()
    dispersion.bit_generator.state = env.np_random.bit_generator.state
    state, over = SIMULATOR.reset(seed), False
    for u in episode.controls:
        np.testing.assert_allclose(SIMULATOR.observe(state), x, atol=ROUNDING, rtol=0)
        assert SIMULATOR.terminated(state) == over
        snapshot = SIMULATOR.snapshot(env)
        if ROUNDING == 0:
            snapshot.bodies[:, 6] = state.bodies[:, 6]
            snapshot.contacts[:, 3] = state.contacts[:, 3]
            assert_same(snapshot, state)
        x, _, over, _, _ = env.step(u)
        state = SIMULATOR.step(state, u, dispersion=dispersion.uniform(-1, 1, 2))
    assert over
    assert SIMULATOR.terminated(state)


def test_rollouts_equal_the_environment_in_every_phase() -> None:
    errors = measure_parity(episodes=6)
    for phase in ("flight", "touchdown", "contact"):
        assert errors[phase]["rollouts"] > 0
        assert errors[phase]["worst_error"] <= ROUNDING
        assert errors[phase]["legs_differ"] == 0 or ROUNDING > 0
    # Box2D does not tell how long a body has been at rest, so a snapshot may fall asleep later.
    assert errors["rest"]["worst_error"] < 1e-3
    replayed = measure_parity(episodes=3, start="replay")
    assert max(phase["worst_error"] for phase in replayed.values()) <= ROUNDING


def test_the_published_errors_are_of_enough_rollouts() -> None:
    published = json.loads((RESULTS / "lunar_lander_parity.json").read_text())
    errors = published["snapshot"]
    assert published["horizon"] == 40
    assert sum(phase["rollouts"] for phase in errors.values()) >= 300
    assert errors["touchdown"]["rollouts"] + errors["contact"]["rollouts"] >= 100
    assert all(errors[p]["equal_to_the_bit"] == errors[p]["rollouts"] for p in ("flight", "touchdown", "contact"))
    assert errors["rest"]["worst_error"] < 1e-3
    assert max(phase["worst_error"] for phase in published["replay"].values()) == 0


def test_the_published_speed_is_enough() -> None:
    published = json.loads((RESULTS / "lunar_lander_speed.json").read_text())
    for phase in ("flight", "touchdown", "contact", "rest"):
        assert published[phase]["steps_per_core_s"] > 60_000
        assert published[phase]["ratio_to_gym"] > 5


def test_planning_leaves_the_environment_untouched() -> None:
    left_alone, planned = (SIMULATOR.make_env().unwrapped for _ in range(2))
    left_alone.reset(seed=4)
    planned.reset(seed=4)
    V = random_controls(4, 10)
    for u in fly(SIMULATOR.make_env().unwrapped, 4, noise=0.3).controls[:120]:
        SIMULATOR.rollout(SIMULATOR.snapshot(planned), V)
        a, b = left_alone.step(u), planned.step(u)
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1:3] == b[1:3]
        assert left_alone.np_random.bit_generator.state == planned.np_random.bit_generator.state


@pytest.mark.parametrize("t", [10, 150])
def test_a_stored_state_continues_with_the_same_bits(t: int, tmp_path: Path) -> None:
    _, state = landing(2, t)
    kept = deepcopy(state)
    V = random_controls(3, 30)
    before = SIMULATOR.rollout(state, V).observations
    assert_same(state, kept)
    np.savez(tmp_path / "state.npz", *state)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as stored:
        arrays: list[Any] = [stored[key] for key in stored.files]
    np.testing.assert_array_equal(SIMULATOR.rollout(LanderState(*arrays), V).observations, before)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    _, state = landing(1, 150)
    V = random_controls(75, 20)
    one = LunarLanderSimulator(threads=1, dispersion=True).rollout(state, V, seed=3)
    for threads in (2, 3, 7):
        many = LunarLanderSimulator(threads=threads, dispersion=True).rollout(state, V, seed=3)
        np.testing.assert_array_equal(many.observations, one.observations)
    # Neither does a rollout depend on its neighbours.
    few = SIMULATOR.rollout(state, V[40:43])
    np.testing.assert_array_equal(few.observations, SIMULATOR.rollout(state, V).observations[40:43])


def test_a_rollout_is_a_sequence_of_steps() -> None:
    _, state = landing(3, 140)
    V, noise = random_controls(1, 30), np.random.default_rng(1).uniform(-1, 1, (1, 30, 2))
    rollout = SIMULATOR.rollout(state, V, dispersion=noise)
    for k in range(30):
        np.testing.assert_array_equal(rollout.observations[0, k], SIMULATOR.observe(state))
        state = SIMULATOR.step(state, V[0, k], dispersion=noise[0, k])
    np.testing.assert_array_equal(rollout.observations[0, 30], SIMULATOR.observe(state))


def test_dispersion_is_zero_unless_asked_for_and_then_from_the_seed() -> None:
    state = SIMULATOR.reset(0)
    V = np.ones((2, 10, 2), np.float32)
    still = SIMULATOR.rollout(state, V, seed=1).observations
    np.testing.assert_array_equal(still, SIMULATOR.rollout(state, V, seed=2).observations)
    np.testing.assert_array_equal(still, SIMULATOR.rollout(state, V, dispersion=[0, 0]).observations)
    shaken = LunarLanderSimulator(threads=1, dispersion=True)
    first = shaken.rollout(state, V, seed=1).observations
    np.testing.assert_array_equal(first, shaken.rollout(state, V, seed=1).observations)
    assert 1e-3 < np.abs(first[:, -1] - still[:, -1]).max() < 0.2
    assert (first != shaken.rollout(state, V, seed=2).observations).any()
    with pytest.raises(AssertionError):
        assert_same(SIMULATOR.step(state, V[0, 0], seed=1), SIMULATOR.step(state, V[0, 0], seed=2))


def test_it_ends_by_crash_by_leaving_the_view_and_by_rest() -> None:
    state = SIMULATOR.reset(0)
    while not SIMULATOR.terminated(state):
        state = SIMULATOR.step(state, [-1, 0])
    assert state.touched[0]
    sideways = SIMULATOR.reset(0)
    sideways.bodies[:, 0] += 10
    assert SIMULATOR.terminated(sideways)
    asleep = SIMULATOR.reset(0)
    asleep.awake[:] = False
    assert SIMULATOR.terminated(asleep)
    assert [where_lost(SIMULATOR)(end) for end in (state, sideways, asleep)] == [True, True, False]


def test_a_lander_at_rest_is_led_and_followed_on_and_a_crash_is_the_end() -> None:
    _, standing = landing(seed=0, t=400)
    falling, silent = SIMULATOR.reset(0), np.array([-1.0, 0.0], np.float32)
    assert SIMULATOR.terminated(SIMULATOR.replay(0, np.tile(silent, (90, 1))))

    def off(x: NDArray[Any]) -> NDArray[np.float32]:
        return np.broadcast_to(silent, (*x.shape[:-1], 2))

    led = lead(SIMULATOR, [standing, falling], off, 0.0, 120)
    assert led.lasted[0] == 120
    assert 50 < led.lasted[1] < 90
    state = standing
    for _ in range(120):
        state = SIMULATOR.step(state, silent)
    assert SIMULATOR.terminated(state)
    plan = np.empty((0, 2), np.float32)
    assert len(follow(SIMULATOR, standing, plan, off, 120)) == 121
    assert 50 < len(follow(SIMULATOR, falling, plan, off, 120)) < 90
    assert len(follow(SIMULATOR, falling, plan, off, 120, lost_too=True)) == 121


def test_a_rollout_that_crashes_or_leaves_the_view_has_ended_and_one_that_comes_to_rest_has_not() -> None:
    """A planner that is to survive must not be kept from landing."""
    idle, sideways = np.zeros((90, 2)), np.tile([0.6, 0.0], (400, 1))
    sideways[:, 1] = np.where(np.arange(400) < 12, 1.0, 0.0)
    high = SIMULATOR.reset(seed=0)
    falls = SIMULATOR.rollout(high, np.stack([idle, idle + 0.4]))
    assert falls.ended is not None
    assert falls.ended.tolist() == [True, False]
    drifts = SIMULATOR.rollout(high, sideways[None])
    assert np.abs(drifts.observations[0, :, 0]).max() >= 1
    assert drifts.ended is not None
    assert drifts.ended.all()
    _, standing = landing(seed=0, t=400)
    rests = SIMULATOR.rollout(standing, idle[None])
    assert rests.ended is not None
    assert not rests.ended.any()


@pytest.mark.parametrize(("t", "terrain_seed", "tolerance"), [(30, 2, 1e-4), (30, 9, 1e-4), (150, 2, 0.02)])
def test_restoring_puts_an_environment_into_a_state(t: int, terrain_seed: int, tolerance: float) -> None:
    real, state = landing(2, t)
    env: Any = SIMULATOR.make_env().unwrapped
    env.reset(seed=terrain_seed)
    SIMULATOR.restore(env, state)
    back = SIMULATOR.snapshot(env)
    np.testing.assert_array_equal(back.terrain, state.terrain)
    np.testing.assert_array_equal(back.touched, state.touched)
    np.testing.assert_allclose(back.bodies[:, :6], state.bodies[:, :6], atol=1e-6)
    u = np.array([0.5, 0.7], np.float32)
    env.np_random = np.random.default_rng(0)
    real.np_random = np.random.default_rng(0)
    (x, reward, *_), (true_x, true_reward, *_) = env.step(u), real.step(u)
    np.testing.assert_allclose(x, true_x, atol=tolerance)
    assert reward == pytest.approx(true_reward, abs=200 * tolerance)


def test_compiled_code_sweeps_many_worlds_at_once() -> None:
    # Losing this costs a factor of four, silently: it takes one address the compiler cannot foresee.
    compiled = numba.njit(nogil=True, error_model="numpy")(sweep_islands.py_func)
    compiled(make_scratch.py_func(), 16)
    (text,) = compiled.inspect_llvm().values()
    assert sum(" fmul <" in line for line in text.splitlines()) > 200


def test_states_of_any_memory_layout_use_the_same_compiled_code() -> None:
    state = SIMULATOR.reset(0)
    SIMULATOR.rollout(state, random_controls(2, 2))
    arrays: list[Any] = [np.asfortranarray(array) for array in state]
    for array in arrays:
        array.flags.writeable = False
    V = random_controls(2, 2).transpose(1, 0, 2)
    SIMULATOR.rollout(LanderState(*arrays), V, dispersion=np.zeros(V.shape))
    SIMULATOR.step(LanderState(*arrays), [0, 0])
    assert len(simulate.signatures) == 1


def test_measurements_hang_together() -> None:
    state = SIMULATOR.reset(0)
    speed = measure_speed([state], samples=10, horizon=3, repetitions=1)
    assert min(speed.values()) > 0
    assert speed["ratio_to_bare"] == pytest.approx(speed["steps_per_core_s"] / speed["bare_steps_per_core_s"])
    assert measure(LunarLanderSimulator, samples=10, horizon=3, builds=1, repetitions=1)["gym_steps_per_s"] > 0
    assert measure_memory(LunarLanderSimulator(threads=2), control_steps=200)["rss_growth_mib"] < 5


def test_gravity_is_the_environments() -> None:
    weak = LunarLanderSimulator(gravity=-5.0, threads=1)
    env = weak.make_env()
    x, _ = env.reset(seed=0)
    np.testing.assert_allclose(weak.observe(weak.reset(0)), x, atol=ROUNDING, rtol=0)
    np.testing.assert_allclose(weak.observe(weak.snapshot(env)), x, atol=ROUNDING, rtol=0)


def test_the_whole_wrapped_environment_can_be_read() -> None:
    env = gymnasium.make("LunarLander-v3", continuous=True)
    x, _ = env.reset(seed=7)
    np.testing.assert_allclose(SIMULATOR.observe(SIMULATOR.snapshot(env)), x, atol=ROUNDING, rtol=0)


def test_many_landers_are_led_as_their_steps_lead_each() -> None:
    simulator, steps, seed = LunarLanderSimulator(threads=2), 130, 3
    starts = [simulator.reset(i) for i in range(40)]

    def policy(x: NDArray[Any]) -> NDArray[np.float32]:
        return np.stack([-2.0 * x[..., 3] - 0.4, x[..., 4]], -1).astype(np.float32)

    led = simulator.lead(starts, policy, 0.5, steps, seed)
    dispersion = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, (steps, len(starts), 2))
    assert 0 < (led.lasted < steps).sum() < len(starts)
    for i in (int(led.lasted.argmin()), int(led.lasted.argmax()), 5):
        state = starts[i]
        for k in range(int(led.lasted[i])):
            state = simulator.step(state, led.controls[i, k], dispersion=dispersion[k, i])
            np.testing.assert_array_equal(simulator.observe(state), led.observations[i, k + 1])
        if led.lasted[i] < steps:
            last = simulator.step(state, led.controls[i, k + 1], dispersion=dispersion[k + 1, i])
            assert simulator.lost(last)
    alone = LunarLanderSimulator(threads=1).lead(starts, policy, 0.5, steps, seed)
    np.testing.assert_array_equal(alone.observations, led.observations)
