"""Amid noise, what becomes of a proposal is learned, and minded."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from conftest import SETTINGS
from rhirl.costs import Cost, network_of, normaliser_of
from rhirl.demos import Demonstrations, Metadata, from_episodes
from rhirl.experiments import RunDirectory, train
from rhirl.experiments.evaluate import load_agent
from rhirl.experiments.plan import plan_run
from rhirl.learning import Config, Controller, Danger, learn_danger
from rhirl.learning.danger import WaryCost, before_astray, outcomes
from rhirl.planning import Planner
from rhirl.simulators import Led, Simulator, lead
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.leading import LeadingSimulator, in_lockstep
from rhirl.simulators.mujoco import MujocoSimulator

WALK = JaxSimulator(
    lambda x, u: x + 0.2 * u,
    lambda x: x,
    lambda key: jax.random.uniform(key, (1,), minval=-0.9, maxval=0.9),
    control_dim=1,
    terminated=lambda x: jnp.abs(x[0]) > 1.0,
)
"""A point on a ridge from −1 to 1, moved by its control; off the ridge the task is lost."""
SIGMA, H = 0.5, 10
CONFIG = Config(beyond=H, wary=8.0, hidden=(32, 32), planner=Planner(K=5, M=64, beta=0.02, ess=0.1))


def still(x: NDArray[Any]) -> NDArray[np.float32]:
    """The proposal commands nothing; noise alone moves the point."""
    return np.zeros_like(x)


@pytest.fixture(scope="module")
def demos() -> Demonstrations:
    meta = Metadata("walk", "walk", SIGMA, (0.0,), (0,), "nobody", {})
    return from_episodes([np.zeros((21, 1), np.float32)], meta, horizon=20)


@pytest.fixture(scope="module")
def danger(demos: Demonstrations) -> Danger:
    return learn_danger(WALK, demos, CONFIG, still, SIGMA, systems=500)


def test_systems_are_led_until_the_task_is_lost() -> None:
    starts = [np.array([x], np.float32) for x in (0.0, 0.5, -0.5)]
    led = lead(WALK, starts, np.ones_like, 0.0, 8)
    # From 0, 0.5 and −0.5 by 0.2 a step: beyond 1 after six, three and eight steps, rounding included.
    np.testing.assert_array_equal(led.lasted, [5, 2, 7])
    np.testing.assert_allclose(led.observations[1, :, 0], [0.5, 0.7, 0.9, 0, 0, 0, 0, 0, 0], atol=1e-6)
    np.testing.assert_array_equal(lead(WALK, starts, still, 0.0, 8).lasted, 8)


def test_noise_is_drawn_anew_for_every_system_and_step_and_clipped() -> None:
    starts = [np.zeros(1, np.float32)] * 500
    led = lead(WALK, starts, still, 0.2, 2, seed=1)
    moved = np.diff(led.observations[..., 0], axis=1) / 0.2
    first, second = moved.T
    assert moved.std() == pytest.approx(0.2, rel=0.05)
    assert abs(np.mean(first * second)) < 0.1 * moved.var()
    assert np.abs(np.diff(lead(WALK, starts, still, 9.0, 1).observations[..., 0])).max() == pytest.approx(0.2)


@pytest.mark.parametrize("env", ["Hopper-v5", "Walker2d-v5", "Ant-v5"])
def test_mujoco_leads_many_as_its_steps_lead_each(env: str) -> None:
    simulator = MujocoSimulator(env, threads=1, integrator="implicitfast", substeps=1)
    assert isinstance(simulator, LeadingSimulator)
    A = np.random.default_rng(0).normal(0, 0.3, (simulator.observation_shape[0], simulator.control_dim))
    starts = [simulator.reset(seed) for seed in range(4)]

    def policy(x: NDArray[Any]) -> NDArray[np.float32]:
        # Row by row: a product of matrices may sum in another order when there are fewer of them.
        return np.stack([np.tanh(row @ A) for row in x]).astype(np.float32)

    together = simulator.lead(starts, policy, 0.3, 60, seed=2)
    apart = in_lockstep(simulator, starts, policy, 0.3, 60, seed=2)
    np.testing.assert_array_equal(together.lasted, apart.lasted)
    np.testing.assert_array_equal(together.observations, apart.observations)
    np.testing.assert_array_equal(together.controls, apart.controls)
    if env != "Ant-v5":
        assert together.lasted.max() < 60  # they fall


def test_only_states_whose_future_is_known_are_asked() -> None:
    observations = np.arange(2 * 7, dtype=np.float32).reshape(2, 7, 1)
    led = Led(observations, np.zeros((2, 6, 1), np.float32), np.array([6, 1]))
    x, y = outcomes(led, gamma=0.5, ahead=3)
    # Six steps, of which states 0…3 have three ahead. The second task is lost in its second step.
    np.testing.assert_array_equal(x[:, 0], [0, 1, 2, 3, 7, 8])
    np.testing.assert_array_equal(y, [0, 0, 0, 0, 0.25, 0.5])


@pytest.mark.parametrize("place", [0.0, -0.4, 0.7, 0.95])
def test_danger_is_how_soon_the_task_is_lost(place: float, danger: Danger) -> None:
    led = lead(WALK, [np.array([place], np.float32)] * 1_000, still, SIGMA, 4 * H, seed=5)
    expected = np.where(led.lasted < 4 * H, 0.1 ** ((led.lasted + 1) / H), 0).mean()
    assert jax.nn.sigmoid(danger.logit(jnp.array([place]))) == pytest.approx(expected, abs=0.05)


def test_danger_counts_as_far_as_it_exceeds_the_usual() -> None:
    x = jnp.linspace(-1, 1, 9)[:, None]
    cost, logit = (
        Cost(normaliser_of(np.asarray(x), floor=0.1, limit=5), network_of(jax.random.key(k), (1,), (8,)))
        for k in range(2)
    )
    d = 1 / (1 + np.exp(-np.asarray(logit(x), np.float64)))
    usual = -np.log(1 - np.median(d))
    expected = np.asarray(cost(x)) + 2.5 * np.maximum(0, -np.log(1 - d) - usual)
    np.testing.assert_allclose(WaryCost(cost, Danger(logit, usual), 2.5)(x), expected, rtol=1e-5, atol=1e-6)


def test_nine_in_ten_demonstrated_states_are_not_dangerous(demos: Demonstrations) -> None:
    everywhere = replace(demos, observations=np.linspace(0, 0.9, 21, dtype=np.float32)[None, :, None])
    danger = learn_danger(WALK, everywhere, CONFIG, still, SIGMA, systems=500)
    dangerous = np.asarray(danger(jnp.asarray(everywhere.states()))) > 0
    np.testing.assert_array_equal(np.flatnonzero(dangerous), [19, 20])


def test_who_minds_danger_keeps_away_from_the_edge(danger: Danger) -> None:
    """A cost that wants to the right edge, where noise pushes it over; and the same cost, wary."""

    right = jax.tree_util.Partial(lambda x: -2 * x[..., 0])
    rng, lasted = np.random.default_rng(0), {}
    for name, known in (("bold", None), ("wary", danger)):
        config = CONFIG if known is not None else Config(planner=CONFIG.planner)
        controller = Controller.configured(WALK, right, config, seed=0, proposal=None, danger=known)
        steps = []
        for _ in range(5):
            state, k = np.zeros(1, np.float32), 0
            while k < 40 and not WALK.terminated(state):
                v = np.clip(controller.act(state) + SIGMA * rng.standard_normal(1), -1, 1)
                state, k = WALK.step(state, v.astype(np.float32)), k + 1
            steps.append(k)
        lasted[name] = np.mean(steps)
    assert lasted["bold"] < 15
    assert lasted["wary"] > 35


def test_amid_noise_another_planner_may_act(danger: Danger) -> None:
    other, near = replace(CONFIG.planner, M=7), replace(CONFIG.planner, M=9)
    cost = jax.tree_util.Partial(lambda x: x[..., 0])
    config = replace(CONFIG, beyond=0, deploy=near)

    def acts(config: Config, danger: Danger | None) -> Planner:
        return Controller.configured(WALK, cost, config, seed=0, proposal=None, danger=danger).planner

    assert acts(config, danger) == CONFIG.planner
    assert acts(replace(config, amid_noise=other), danger) == other
    assert acts(replace(config, amid_noise=other), None) == near


@pytest.mark.parametrize("exact", [False, True])
def test_amid_noise_the_exact_model_may_be_planned_with(
    exact: bool, danger: Danger, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost, cheap = jax.tree_util.Partial(lambda x: x[..., 0]), copy(WALK)
    monkeypatch.setattr(cheap, "exact", lambda: WALK, raising=False)
    config = replace(CONFIG, beyond=0, exact=exact)

    def planned_with(danger: Danger | None) -> Simulator:
        return Controller.configured(cheap, cost, config, seed=0, proposal=None, danger=danger).simulator

    assert planned_with(danger) is (WALK if exact else cheap)
    assert planned_with(None) is cheap


NOISY = (*SETTINGS, "planner.guided=0.5", "planner.K=5", "starts=0.5", "beyond=10", "wary=2", "deploy=None")


def test_a_run_amid_noise_ends_with_a_danger_and_acts_with_it(tmp_path: Path) -> None:
    config = plan_run("hopper", noise=0.5, episodes=2, overrides=NOISY, evaluations=0)
    run = RunDirectory(tmp_path / "noisy")
    train(run, config)
    _, agent = load_agent(run)
    minded: Any = agent
    cost = minded.controller.cost
    assert isinstance(cost, WaryCost)
    assert cost.c == 2
    x = jnp.zeros(11)
    np.testing.assert_array_equal(cost.danger(x), Danger.load(run.danger)(x))


@pytest.mark.parametrize("astray", [False, True])
def test_danger_is_as_old_as_the_cost_that_tells_who_goes_astray(
    astray: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (*NOISY, "penalty=1", f"astray={astray}")
    config = plan_run("hopper", noise=0.5, episodes=2, overrides=settings, evaluations=0)
    learner: Any = train(RunDirectory(tmp_path / "noisy"), config)
    costs: list[Any] = []
    monkeypatch.setattr("rhirl.experiments.methods.ours.learn_danger", lambda *_, cost, **__: costs.append(cost))
    learner.danger()  # nothing is new since the end of the run
    assert costs == []
    learner.rhirl.step()
    learner.danger()
    assert len(costs) == astray
    assert not astray or costs[0].network is learner.rhirl.learned_cost.network


def test_a_coefficient_of_danger_is_not_negative() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Config(wary=-1.0)


def test_a_system_is_lost_where_it_goes_astray_for_good() -> None:
    g = np.full((5, 41), -1.0)
    g[1, 21:] = 1.0  # astray from here to the end: of the last ten steps more than half are from 25 on
    g[2, 10:35] = 1.0  # comes back
    g[3, 33:] = 1.0  # too late to tell
    g[4, 5:] = 1.0  # ended before it would have been told
    np.testing.assert_array_equal(before_astray(g, np.array([40, 40, 40, 40, 12]), 10), [40, 25, 40, 40, 12])
