"""MujocoSimulator against Gymnasium's own `step`: equal means every bit of every float64."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.simulators.mujoco import MujocoSimulator
from rhirl.simulators.protocol import EnvironmentSimulator


class Task(NamedTuple):
    env_id: str
    n: int
    K: int
    env_kwargs: Mapping[str, Any] = MappingProxyType({})

    def simulator(self, **options: Any) -> MujocoSimulator:
        options = {"dtype": np.float64, "threads": 2, **options}
        return MujocoSimulator(self.env_id, env_kwargs=self.env_kwargs, **options)


HOPPER, WALKER, ANT = Task("Hopper-v5", 11, 20), Task("Walker2d-v5", 17, 30), Task("Ant-v5", 105, 15)
CLASSIC_ANT = Task("Ant-v4", 111, 15, {"use_contact_forces": True})
CHEETAH, HUMANOID = Task("HalfCheetah-v5", 17, 15), Task("Humanoid-v5", 348, 15)
TASKS = [HOPPER, WALKER, ANT, CLASSIC_ANT, CHEETAH, HUMANOID]
# Reacher and the double pendulum compute observations, the pusher observes positions of bodies.
OTHERS = [Task("Reacher-v5", 10, 5), Task("Pusher-v5", 23, 5), Task("InvertedDoublePendulum-v5", 9, 5)]

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
every_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.env_id)
every_environment = pytest.mark.parametrize("task", TASKS + OTHERS, ids=lambda task: task.env_id)


class Episode(NamedTuple):
    controls: NDArray[np.float32]
    states: list[NDArray[np.float64]]
    observations: NDArray[np.float64]
    rewards: list[float]
    terminated: list[bool]
    contacts: NDArray[np.int_]


def run_episode(sim: MujocoSimulator, length: int, seed: int) -> Episode:
    """Run the plain environment under random controls, past falls."""
    env = sim.make_env()
    observation, _ = env.reset(seed=seed)
    controls = np.random.default_rng(seed).uniform(-1, 1, (length, sim.control_dim)).astype(np.float32)
    states, observations, rewards, ends, contacts = [sim.snapshot(env)], [observation], [], [], []
    inner: Any = env.unwrapped
    for control in controls:
        observation, reward, terminated, _, _ = inner.step(sim.action(control))
        states.append(sim.snapshot(env))
        observations.append(observation)
        rewards.append(reward)
        ends.append(terminated)
        contacts.append(inner.data.ncon)
    return Episode(controls, states, np.array(observations), rewards, ends, np.array(contacts))


@every_task
def test_rollouts_are_what_the_environment_does(task: Task) -> None:
    sim, K = task.simulator(), task.K
    assert isinstance(sim, EnvironmentSimulator)
    assert sim.observation_shape == (task.n,)
    rng = np.random.default_rng(1)
    in_contact = 0
    for seed in range(2):
        episode = run_episode(sim, 55 + K, seed)
        in_contact += (episode.contacts[:55] > 0).sum()
        for t in range(55):
            V = rng.uniform(-1, 1, (2, K, sim.control_dim)).astype(np.float32)
            V[1] = episode.controls[t : t + K]
            rollout = sim.rollout(episode.states[t], V)
            assert rollout.valid.all()
            np.testing.assert_array_equal(rollout.observations[1], episode.observations[t : t + K + 1])
    assert in_contact >= 20


@every_task
def test_any_number_of_threads_gives_the_same_bits(task: Task) -> None:
    sims = [task.simulator(threads=threads) for threads in (1, 2, 4)]
    state = run_episode(sims[0], 25, seed=3).states[-1]
    V = np.random.default_rng(2).uniform(-1, 1, (7, task.K, sims[0].control_dim))
    one, two, four = (sim.rollout(state, V).observations for sim in sims)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, four)
    single = task.simulator(dtype=np.float32).rollout(state, V).observations
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, one.astype(np.float32))


@every_environment
def test_step_observe_and_terminated_are_the_environments_own(task: Task) -> None:
    sim = task.simulator()
    episode = run_episode(sim, 60, seed=0)
    for t, control in enumerate(episode.controls):
        after = sim.step(episode.states[t], control)
        np.testing.assert_array_equal(after, episode.states[t + 1])
        np.testing.assert_array_equal(sim.observe(after), episode.observations[t + 1])
        assert sim.terminated(after) == episode.terminated[t]
    simulated = sim.rollout(episode.states[0], episode.controls[None, : task.K]).observations[0]
    np.testing.assert_array_equal(simulated, episode.observations[: task.K + 1])


def test_falling_ends_hopper_walker_and_humanoid_but_never_the_cheetah() -> None:
    for task in (HOPPER, WALKER, HUMANOID):
        assert any(run_episode(task.simulator(), 120, seed=0).terminated)
    assert not any(run_episode(CHEETAH.simulator(), 120, seed=0).terminated)


@every_environment
def test_restoring_and_replaying_repeats_observations_and_rewards(task: Task) -> None:
    sim = task.simulator()
    episode = run_episode(sim, 40, seed=5)
    env = sim.make_env()
    env.reset(seed=77)
    inner: Any = env.unwrapped
    for t in (0, 20):
        sim.restore(env, episode.states[t])
        np.testing.assert_array_equal(inner._get_obs(), episode.observations[t])
        np.testing.assert_array_equal(sim.snapshot(env), episode.states[t])
        for k in range(t, 40):
            observation, reward, terminated, _, _ = inner.step(sim.action(episode.controls[k]))
            np.testing.assert_array_equal(observation, episode.observations[k + 1])
            assert (reward, terminated) == (episode.rewards[k], episode.terminated[k])


@every_task
def test_planning_leaves_the_real_environment_untouched(task: Task) -> None:
    sim = task.simulator()
    env = sim.make_env()
    env.reset(seed=0)
    inner: Any = env.unwrapped
    for _ in range(20):
        inner.step(inner.action_space.high)

    def everything() -> list[NDArray[Any]]:
        fields = (getattr(inner.data, name) for name in dir(inner.data) if not name.startswith("_"))
        return [field.copy() for field in fields if isinstance(field, np.ndarray)]

    before, random_state = everything(), inner.np_random.bit_generator.state
    state = sim.snapshot(env)
    kept = state.copy()
    sim.rollout(state, np.full((3, task.K, sim.control_dim), 0.5))
    sim.step(state, np.ones(sim.control_dim))
    sim.observe(state)
    sim.terminated(state)
    sim.reset(9)
    np.testing.assert_array_equal(state, kept)
    assert inner.np_random.bit_generator.state == random_state
    for was, now in zip(before, everything(), strict=True):
        np.testing.assert_array_equal(was, now)


@every_task
def test_reset_is_the_environments_reset(task: Task) -> None:
    sim = task.simulator()
    observation, _ = sim.make_env().reset(seed=11)
    np.testing.assert_array_equal(sim.observe(sim.reset(11)), observation)


@pytest.mark.parametrize("task", [ANT, CLASSIC_ANT], ids=lambda task: task.env_id)
def test_ant_without_contact_forces_is_the_27_dimensional_view(task: Task) -> None:
    full, view = task.simulator(), task.simulator(contact_forces=False)
    assert view.observation_shape == (27,)
    state = run_episode(full, 30, seed=0).states[-1]
    V = np.random.default_rng(0).uniform(-1, 1, (4, 15, 8))
    whole = full.rollout(state, V).observations
    assert (np.abs(whole[..., 27:]) > 0).any()
    np.testing.assert_array_equal(view.rollout(state, V).observations, whole[..., :27])
    np.testing.assert_array_equal(view.observe(state), whole[0, 0, :27])


def test_controls_are_scaled_to_the_range_of_the_actuators() -> None:
    controls = np.array([-1.0, 0.5] + [3.0] * 15)
    np.testing.assert_allclose(HUMANOID.simulator().action(controls), [-0.4, 0.2] + [0.4] * 15, rtol=1e-7)
    pendulum = MujocoSimulator("InvertedPendulum-v5")
    np.testing.assert_array_equal(pendulum.action(np.array([-1.0])), [-3.0])
