"""RHIRL's control step: what it executes, counts, updates, keeps when rollouts fail, and learns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import Array
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from rhirl.costs import Cost
from rhirl.demos import DemonstrationError, Demonstrations, Metadata, from_episodes
from rhirl.learning import RHIRL, Config, Controller
from rhirl.learning.control_step import make_optimiser, plan, propose
from rhirl.learning.episodes import Episodes
from rhirl.learning.objective import crop, expert_windows, loss, trajectory_cost
from rhirl.learning.streams import EXECUTION, draw
from rhirl.planning import Planner, smooth, warm_start, weigh
from rhirl.simulators import Rollout
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.pendulum import PendulumSimulator

Bits = Callable[[Any], list[bytes]]
Make = Callable[..., RHIRL]


class Watched(PendulumSimulator):
    """A pendulum that remembers what was done to it, and breaks some of its rollouts."""

    def __init__(self, breaks: Callable[[int, int], Any] | None = None, honest: bool = True) -> None:
        super().__init__()
        self.breaks = breaks
        self.honest = honest
        self.rolled: list[NDArray[Any]] = []
        self.executed: list[NDArray[Any]] = []
        self.end_after: int | None = None

    def rollout(self, state: NDArray[np.float64], controls: NDArray[Any], seed: int = 0) -> Rollout:
        observations, valid, _ = super().rollout(state, controls, seed)
        if self.breaks is not None:
            broken = np.zeros(len(controls), bool)
            broken[self.breaks(len(self.rolled), len(controls))] = True
            observations[broken, 2:] = np.nan
            if self.honest:
                valid = valid & ~broken
        self.rolled.append(controls)
        return Rollout(observations, valid)

    def step(self, state: NDArray[np.float64], control: NDArray[Any], seed: int = 0) -> NDArray[np.float64]:
        self.executed.append(control)
        return super().step(state, control, seed)

    def terminated(self, state: NDArray[np.float64]) -> bool:
        return self.end_after is not None and len(self.executed) % self.end_after == 0


def planned(learner: RHIRL) -> tuple[Array, Array, Array, Any]:
    """Do once more, from outside, what the learner's next step will plan."""
    state, config = learner.state, learner.config
    index = int(state.iteration)
    V = propose(state.key, index, state.U, config.planner)
    x, valid, _ = learner._roll_out(V, index)
    cost = Cost(learner._normalise, state.network)
    return plan(cost, state.U, V, x, valid, state.t.astype(np.int32), learner._experts, state.key, index, config)


def test_it_counts_what_it_does(make_learner: Make, small: Config) -> None:
    simulator = Watched()
    learner = make_learner(simulator)
    seen = []
    learner.learn(7, callback=lambda _, metrics: seen.append(metrics))
    B, M, K = small.parallel, small.planner.M, small.planner.K
    assert learner.state.iteration == 7
    assert learner.state.executed == 7 * B == len(simulator.executed)
    assert learner.state.simulated == 7 * B * M * K == sum(V.shape[0] * V.shape[1] for V in simulator.rolled)
    assert learner.state.invalid == 0
    assert len(seen) == 7
    for metrics in seen:
        assert all(np.isfinite(float(value)) for value in metrics)
        assert 1 <= metrics.ess <= M
        assert metrics.lam == pytest.approx(small.planner.lam)
        assert metrics.spread > 0
    assert learner.learn(7).state.iteration == 7
    assert learner.learn(9).state.iteration == 9


def test_what_is_executed_is_the_plan_without_any_exploration(make_learner: Make) -> None:
    simulator = Watched()
    learner = make_learner(simulator)
    for _ in range(5):
        _, u, _, _ = planned(learner)
        simulator.executed.clear()
        learner.step()
        np.testing.assert_array_equal(simulator.executed, u)


def test_control_noise_of_the_system_is_added_to_what_is_executed_and_to_nothing_else(make_learner: Make) -> None:
    sigma, residuals = 0.1, []
    simulator = Watched()
    learner = make_learner(simulator, noise=sigma)
    for _ in range(100):
        _, u, _, _ = planned(learner)
        simulator.executed.clear()
        learner.step()
        inside = np.abs(np.asarray(u)) < 0.5  # where clipping to the box cannot touch the noise
        residuals += (np.asarray(simulator.executed) - np.asarray(u))[inside].tolist()
        assert np.abs(simulator.executed).max() <= 1
    assert len(residuals) > 100
    assert np.std(residuals) == pytest.approx(sigma, rel=4 / np.sqrt(2 * len(residuals)))
    assert abs(np.mean(residuals)) < 4 * sigma / np.sqrt(len(residuals))


def test_process_noise_does_not_follow_the_control_noise(make_learner: Make) -> None:
    """Both are drawn at every executed step; from one seed, NumPy's normals of both types would be correlated."""
    given: list[int] = []

    class Spy(PendulumSimulator):
        def step(self, state: NDArray[np.float64], control: NDArray[Any], seed: int = 0) -> NDArray[np.float64]:
            given.append(seed)
            return super().step(state, control, seed)

    learner = make_learner(Spy(), noise=0.3).learn(30)
    own = {draw(learner.seed, EXECUTION, i, b) for i in range(30) for b in range(2)}
    assert len(set(given)) == 60
    assert own.isdisjoint(given)


def test_one_update_is_adam_on_the_gradient_plus_weight_decay(
    make_learner: Make, small: Config, bits: Bits
) -> None:
    """L2 weight decay goes into the gradient before Adam; it is not decoupled."""
    config, learner = small, make_learner().learn(3)
    state, optimiser = learner.state, optax.adam(config.lr)
    _, _, _, weighed = planned(learner)
    V = propose(state.key, 3, state.U, config.planner)
    x, _, _ = learner._roll_out(V, 3)

    def objective(network: Any) -> Array:
        cost = Cost(learner._normalise, network)
        losses = [
            loss(
                cost,
                expert_windows(learner._experts, jnp.asarray(state.t[b]), config.planner.K),
                jnp.asarray(x[b]),
                weighed.w[b],
                weighed.lam[b],
            )
            for b in range(config.parallel)
        ]
        return jnp.stack(losses).mean()

    value, gradient = jax.jit(jax.value_and_grad(objective))(state.network)
    decayed = jax.tree.map(lambda g, theta: g + config.weight_decay * theta, gradient, state.network)
    moments = optimiser.init(state.network)
    mu, nu = (jnp.asarray(leaf) for leaf in jax.tree.leaves(state.optimiser) if np.ndim(leaf) == 1)
    flat, unravel = ravel_pytree(state.network)
    assert mu.shape == flat.shape
    adam = moments[0]._replace(count=jnp.asarray(3, jnp.int32), mu=unravel(mu), nu=unravel(nu))
    step, _ = optimiser.update(decayed, (adam, *moments[1:]))
    expected = optax.apply_updates(state.network, step)

    metrics = learner.step()
    assert metrics.loss == pytest.approx(float(value), rel=1e-4, abs=1e-4)
    for a, b, before in zip(
        *(jax.tree.leaves(t) for t in (learner.state.network, expected, state.network)), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=2e-6)
        assert np.abs(a - before).max() > 1e-4
    for a, new, old in zip(
        *(jax.tree.leaves(t) for t in (learner.state.average, learner.state.network, state.average)), strict=True
    ):
        np.testing.assert_allclose(a, 0.9 * old + 0.1 * new, atol=1e-6)


def test_a_decaying_rate_follows_half_a_cosine_to_zero(small: Config) -> None:
    """Under a constant gradient Adam steps by the learning rate itself."""
    config = replace(small, decay=True, iterations=40, weight_decay=0.0)
    theta, optimiser = jnp.zeros(2), make_optimiser(config)
    state, steps = optimiser.init(theta), []
    for _ in range(41):
        step, state = optimiser.update(jnp.array([1.0, -2.0]), state, theta)
        steps.append(step)
    rate = config.lr * (1 + np.cos(np.pi * np.arange(41) / 40)) / 2
    np.testing.assert_allclose(np.array(steps), rate[:, None] * [-1, 1], rtol=1e-4, atol=1e-9)


def test_weights_see_only_as_much_of_the_future_as_the_experts_have(make_learner: Make) -> None:
    learner = make_learner()
    T, K = learner.demos.horizon, learner.config.planner.K
    t = np.array([T - 2, 10])
    learner.restore(learner.state._replace(t=t))
    _, _, _, weighed = planned(learner)
    V = propose(learner.state.key, 0, learner.state.U, learner.config.planner)
    x, _, _ = learner._roll_out(V, 0)
    for b, states in ((0, 3), (1, K + 1)):
        mask = crop(expert_windows(learner._experts, jnp.asarray(t[b]), K))
        assert mask.sum() == states
        S = trajectory_cost(learner.cost(x[b]), mask)
        np.testing.assert_allclose(
            weighed.w[b], weigh(S, learner.state.U[b], V[b], learner.config.planner).w, rtol=1e-3, atol=1e-6
        )


def test_episodes_start_apart_and_end_at_their_time(make_learner: Make) -> None:
    learner = make_learner()
    T, starts = learner.demos.horizon, []
    for i in range(1, 2 * T + 1):
        before = learner.state
        learner.step()
        for b in range(2):
            if learner.state.episode[b] != before.episode[b]:
                starts.append((i, b, int(learner.state.episode[b])))
                assert learner.state.t[b] == 0
                assert (np.asarray(learner.state.U[b]) == 0).all()
                expected = learner.simulator.reset(draw(learner.seed, 0, int(learner.state.episode[b])))
                np.testing.assert_array_equal(learner.state.systems[b], expected)
            else:
                assert learner.state.t[b] == before.t[b] + 1
    assert starts == [(T // 2, 0, 2), (T, 1, 3), (T + T // 2, 0, 4), (2 * T, 1, 5)]


@pytest.mark.parametrize(("T", "B"), [(3, 8), (100, 8), (5, 5), (1, 1)])
def test_first_episodes_are_spread_and_none_is_empty(T: int, B: int) -> None:
    demos = straight_demos(np.zeros((1, T + 1, 3), np.float32))
    episodes = Episodes(PendulumSimulator(), demos, Config(planner=Planner(K=2, M=2), parallel=B), seed=0)
    lengths = [episodes.begin(b).end for b in range(B)]
    assert lengths == [max(1, T * (b + 1) // B) for b in range(B)]
    assert lengths[-1] == T
    assert [episodes.begin(b).end for b in range(B, 2 * B)] == [T] * B


def test_a_terminated_system_starts_a_new_episode(make_learner: Make) -> None:
    simulator = Watched()
    simulator.end_after = 10
    learner = make_learner(simulator).learn(12)
    assert learner.state.episode.tolist() == [0, 3]
    assert learner.state.t.tolist() == [12, 2]


def test_diverged_rollouts_get_no_weight_and_are_counted(make_learner: Make, bits: Bits) -> None:
    broken = make_learner(Watched(lambda call, M: [1, M - 1]))
    for _ in range(10):
        _, _, _, weighed = planned(broken)
        assert (weighed.w[:, [1, 7]] == 0).all()
        np.testing.assert_allclose(weighed.w.sum(axis=1), 1, rtol=1e-5)
        metrics = broken.step()
        assert all(np.isfinite(float(value)) for value in metrics)
    assert broken.state.invalid == 10 * 2 * 2
    assert all(np.isfinite(np.frombuffer(leaf, np.float32)).all() for leaf in bits(broken.state.network))


def test_if_every_rollout_is_bad_the_plan_is_kept_and_theta_stands_still(
    make_learner: Make, small: Config, bits: Bits
) -> None:
    simulator = Watched()
    learner = make_learner(simulator).learn(10)
    before, U = learner.state, learner.state.U
    simulator.breaks = lambda call, M: slice(None)
    for _ in range(3):
        assert all(np.isfinite(float(value)) for value in learner.step())
        assert bits((learner.state.network, learner.state.optimiser)) == bits((before.network, before.optimiser))
        U = jax.vmap(lambda plan: smooth(plan, small.planner))(U)
        np.testing.assert_allclose(simulator.executed[-2:], U[:, 0], atol=1e-6)
        U = jax.vmap(warm_start)(U)
        np.testing.assert_allclose(learner.state.U, U, atol=1e-6)
    assert learner.state.invalid == 3 * 2 * small.planner.M
    simulator.breaks = None
    learner.step()
    assert bits(learner.state.network) != bits(before.network)


def test_one_bad_episode_does_not_stop_the_others(make_learner: Make, bits: Bits) -> None:
    learner = make_learner(Watched(lambda call, M: slice(None) if call % 2 else []))
    before = bits(learner.state.network)
    learner.learn(5)
    assert learner.state.invalid == 5 * 8
    assert bits(learner.state.network) != before
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner.state.network))


@pytest.mark.parametrize("breaks", [lambda call, M: [0], lambda call, M: slice(None)])
def test_not_even_a_simulator_that_lies_makes_theta_nan(make_learner: Make, breaks: Callable[..., Any]) -> None:
    learner = make_learner(Watched(breaks, honest=False)).learn(10)
    for tree in (learner.state.network, learner.state.optimiser, learner.state.average, learner.state.U):
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


def test_acting_is_the_controller_with_the_learned_cost(make_learner: Make) -> None:
    learner = make_learner().learn(5)
    controller = Controller(learner.simulator, learner.learned_cost, learner.config.acting, seed=learner.seed)
    state = learner.simulator.reset(7)
    for _ in range(3):
        u = learner.act(state)
        assert u.shape == (1,)
        np.testing.assert_array_equal(u, controller.act(state))
        state = learner.simulator.step(state, u)


def test_a_controller_starts_anew_when_it_is_reset(make_learner: Make) -> None:
    learner = make_learner()
    controller = Controller(learner.simulator, learner.learned_cost, learner.config.planner, seed=1)
    state = learner.simulator.reset(0)
    first = [controller.act(state).tobytes() for _ in range(3)]
    controller.reset(1)
    assert [controller.act(state).tobytes() for _ in range(3)] == first
    controller.reset(2)
    assert [controller.act(state).tobytes() for _ in range(3)] != first


def test_a_learned_cost_is_saved_and_loaded_and_learning_goes_on_from_it(
    make_learner: Make, bits: Bits, tmp_path: Path
) -> None:
    learner = make_learner().learn(20)
    learner.save(tmp_path / "cost.safetensors")
    other = make_learner(seed=9).load(tmp_path / "cost.safetensors")
    x = np.random.default_rng(0).standard_normal((4, 2, 3))
    assert learner.cost(x).shape == (4, 2)
    assert bits(other.cost(x)) == bits(learner.cost(x))
    assert bits(other.learn(1).cost(x)) != bits(learner.cost(x))


def test_a_restored_learner_goes_on_bit_for_bit(make_learner: Make, bits: Bits) -> None:
    straight = make_learner(noise=0.5).learn(60)
    first = make_learner(noise=0.5).learn(23)
    second = make_learner(noise=0.5)
    second.restore(first.state)
    assert bits(second.learn(60).state) == bits(straight.state)


def test_a_learner_with_a_quorum_learns_as_from_what_is_left(pendulum_demos: Demonstrations, bits: Bits) -> None:
    ragged = replace(pendulum_demos, lengths=np.array([100, 12, 20]))
    config = Config(Planner(K=5, M=8, knots=None), parallel=2, iterations=30, hidden=(8,), quorum=0.6)
    learner = RHIRL(PendulumSimulator(), ragged, config).learn()
    left = RHIRL(PendulumSimulator(), ragged.quorate(0.6), replace(config, quorum=0.0)).learn()
    everything = RHIRL(PendulumSimulator(), ragged, replace(config, quorum=0.0)).learn()
    assert learner.demos.horizon == 20
    assert bits(learner.state) == bits(left.state)
    assert bits(learner.state.network) != bits(everything.state.network)
    assert learner.state.episode.max() > 0


def test_demonstrations_of_another_system_are_refused() -> None:
    with pytest.raises(DemonstrationError, match=r"shape \(2,\), the simulator's are \(3,\)"):
        RHIRL(PendulumSimulator(), straight_demos(np.zeros((1, 11, 2), np.float32)))


@pytest.mark.parametrize(
    "setting",
    [{"iterations": 0}, {"parallel": 0}, {"M_s": 0}, {"lr": 0.0}, {"lr": float("nan")}, {"quorum": 1.5}],
)
def test_settings_that_make_no_sense_are_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        Config(**setting)


def test_a_planted_quadratic_cost_is_recovered_up_to_shift_and_scale() -> None:
    """The regulator of a cost we know drives a double integrator; RHIRL finds the cost from the states alone."""
    A, B, Q = np.array([[1.0, 0.2], [0.0, 1.0]]), np.array([[0.0], [0.2]]), np.diag([1.0, 0.3])
    goal, P = np.array([0.5, 0.0]), Q
    for _ in range(200):
        gain = np.linalg.solve(0.1 + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ gain)
    simulator = JaxSimulator(
        lambda x, v: jnp.asarray(A, jnp.float32) @ x + jnp.asarray(B, jnp.float32) @ v,
        observe=lambda x: x,
        reset=lambda key: jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0),
        control_dim=1,
    )
    x = np.stack([simulator.reset(1000 + i) for i in range(20)]).astype(np.float64)
    states = [x]
    for _ in range(30):
        x = x @ A.T + np.clip((goal - x) @ gain.T, -1, 1) @ B.T
        states.append(x)
    demos = straight_demos(np.stack(states, axis=1).astype(np.float32))

    planner = Planner(K=6, M=32, beta=0.5, lam=0.3)
    config = Config(planner=planner, hidden=(16, 16), parallel=8, lr=3e-3, average=0.99, weight_decay=1e-3)
    learner = RHIRL(simulator, demos, config).learn(300)
    around = np.stack(np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-0.7, 0.7, 21)), axis=-1)
    for x in (demos.states(), around.reshape(-1, 2)):
        planted = np.einsum("ij,jk,ik->i", x - goal, Q, x - goal)
        assert np.corrcoef(learner.cost(x), planted)[0, 1] > 0.9


def straight_demos(observations: NDArray[np.float32]) -> Demonstrations:
    N, length, _ = observations.shape
    meta = Metadata("test", "Test-v0", 0.0, (np.nan,) * N, (-1,) * N, "this test")
    return from_episodes(list(observations), meta, horizon=length - 1)
