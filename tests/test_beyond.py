"""A plan is followed only if the task can go on behind it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.learning import Config, Controller
from rhirl.learning.beyond import Beyond, cheapest
from rhirl.planning import Planner
from rhirl.simulators import FollowingSimulator, follow
from rhirl.simulators.following import step_by_step
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.mujoco import MujocoSimulator

CLIFF = JaxSimulator(
    lambda x, u: jnp.stack([x[0] + 0.1 * x[1], x[1] + 0.1 * u[0]]),
    lambda x: x,
    lambda key: jnp.zeros(2),
    control_dim=1,
    terminated=lambda x: x[0] > 1.0,
)
"""A point with a position and a velocity; the task is lost where the position exceeds one."""
MIRE = JaxSimulator(
    lambda x, u: jnp.where(
        x[0] > 1.0, x * jnp.array([1.0, 0.0]), jnp.stack([x[0] + 0.1 * x[1], x[1] + 0.1 * u[0]])
    ),
    lambda x: x,
    lambda key: jnp.zeros(2),
    control_dim=1,
)
"""The same point; where the position exceeds one it is stuck for good, and the task goes on."""
PLANNER = Planner(K=4, M=32, beta=0.1, guided=0.5, ess=0.1)


def brake(x: NDArray[Any]) -> NDArray[np.float32]:
    """The proposal stops, and stands."""
    return np.clip(-10 * x[1:], -1, 1).astype(np.float32)


def fast(x: jax.Array) -> jax.Array:
    """A cost that wants to go right and knows of no cliff."""
    return -x[..., 0] - x[..., 1]


def drive(beyond: int, steps: int = 60) -> tuple[int, float]:
    """Return how many steps a controller lasts, and the farthest it got."""
    controller, state = Controller(CLIFF, fast, PLANNER, proposal=brake, beyond=beyond), CLIFF.reset(0)
    farthest = 0.0
    for k in range(steps):
        state = CLIFF.step(state, controller.act(state))
        if CLIFF.terminated(state):
            return k, farthest
        farthest = max(farthest, float(CLIFF.observe(state)[0]))
    return steps, farthest


def test_who_looks_beyond_the_horizon_stops_before_the_cliff() -> None:
    blind, _ = drive(beyond=0)
    assert blind < 20
    seeing, farthest = drive(beyond=30)
    assert seeing == 60
    assert farthest > 0.8  # the cost still has its way, as far as there is one


def demonstrated(x: jax.Array) -> jax.Array:
    """A cost that is above zero where no expert goes, and still wants to go right."""
    return jnp.where(x[..., 0] > 1.0, 0.5, fast(x) - 1.0)


@pytest.mark.parametrize(("astray", "stuck"), [(False, True), (True, False)])
def test_where_no_expert_goes_is_lost_without_an_end(astray: bool, stuck: bool) -> None:
    controller = Controller(MIRE, demonstrated, PLANNER, proposal=brake, beyond=30, astray=astray)
    state = MIRE.reset(0)
    for _ in range(60):
        state = MIRE.step(state, controller.act(state))
    assert (MIRE.observe(state)[0] > 1.0) == stuck


def test_the_least_astray_is_followed_if_all_are() -> None:
    state = CLIFF.reset(0)
    plans = [np.full((3, 1), u) for u in (-0.1, -0.5, -0.3)]
    look = Beyond(CLIFF, brake, 10, lambda x: 1.0 + x[:, 0].mean())
    assert look.choose(state, plans) is plans[1]
    lost, last = np.zeros((4, 2)), np.array([[-3.0, 0.0]] * 11)
    assert look.how_well(lost) == (3, 0.0)  # the task's end comes first
    assert look.how_well(last) == (10, 0.0)  # better than zero is as good as zero
    assert look.how_well(last + np.array([2.5, 0.0])) == (10, -0.5)


def test_steps_are_counted_until_the_task_is_lost() -> None:
    state, right, still = CLIFF.reset(0), np.ones((4, 1), np.float32), np.empty((0, 1), np.float32)
    # x_k = 0.01 · k(k−1)/2 under full thrust: beyond one after fifteen steps, so fourteen last.
    seen = follow(CLIFF, state, still, lambda x: np.ones(1), 40)
    np.testing.assert_allclose(seen[:, 0], [0.005 * k * (k - 1) for k in range(15)], atol=1e-6)
    assert len(follow(CLIFF, state, right, brake, 40)) == 41


def test_the_first_plan_that_lasts_is_followed_or_else_the_longest() -> None:
    state = CLIFF.step(CLIFF.reset(0), np.ones(1))
    look = Beyond(CLIFF, lambda x: np.ones(1), 15)
    left, right = -np.ones((3, 1)), np.ones((3, 1))
    assert look.choose(state, [right, left, 0.5 * left]) is left
    neither = Beyond(CLIFF, lambda x: np.ones(1), 100)
    assert neither.choose(state, [right, 0.5 * left, left, right]) is left


def test_the_cheapest_come_first() -> None:
    V = np.arange(30.0).reshape(30, 1, 1)
    S = np.where(V[:, 0, 0] == 7, np.inf, -V[:, 0, 0])
    np.testing.assert_array_equal(cheapest(V, S)[:, 0, 0], np.arange(29.0, 19.0, -1))


@pytest.mark.parametrize("env", ["Hopper-v5", "Walker2d-v5", "Ant-v5"])
def test_mujoco_follows_a_policy_as_its_steps_do(env: str) -> None:
    simulator = MujocoSimulator(env, threads=1, integrator="implicitfast", substeps=1)
    assert isinstance(simulator, FollowingSimulator)
    n, m = simulator.observation_shape[0], simulator.control_dim
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = rng.normal(0, 0.5, (m, n)).astype(np.float32)
        state, controls = simulator.reset(seed), rng.uniform(-1, 1, (5, m)).astype(np.float32)

        def policy(x: NDArray[Any], A: NDArray[np.float32] = A) -> NDArray[np.float32]:
            return np.tanh(A @ x)

        by_steps = step_by_step(simulator, state, controls, policy, 120)
        np.testing.assert_array_equal(simulator.follow(state, controls, policy, 120), by_steps)
        found.append(len(by_steps) - 1)
        by_steps = step_by_step(simulator, state, controls, policy, 120, lost_too=True)
        np.testing.assert_array_equal(simulator.follow(state, controls, policy, 120, lost_too=True), by_steps)
        assert len(by_steps) == 121
    assert min(found) < 120
    assert len(set(found)) > 3  # falls, at different times


def test_an_environment_whose_end_is_not_seen_is_followed_step_by_step() -> None:
    simulator = MujocoSimulator("Reacher-v5", threads=1)
    assert len(simulator.follow(simulator.reset(0), np.zeros((1, 2)), lambda x: np.zeros(2), 5)) == 6


def test_to_look_beyond_takes_a_proposal() -> None:
    with pytest.raises(ValueError, match="set guided > 0, or beyond=0"):
        Controller(CLIFF, fast, Planner(), beyond=10)
    with pytest.raises(ValueError, match="beyond is a number of steps"):
        Config(beyond=-1)
    with pytest.raises(ValueError, match="astray=True takes a penalty > 0"):
        Config(astray=True)
