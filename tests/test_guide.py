"""What the demonstrator did, asked of the simulator; and a policy that guides the planner's samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from conftest import SETTINGS
from rhirl.baselines import BC, BCConfig
from rhirl.demos import Demonstrations, load_demos
from rhirl.experiments import RunDirectory, train
from rhirl.experiments.evaluate import load_agent
from rhirl.experiments.plan import plan_run
from rhirl.experiments.presets import configure
from rhirl.learning import RHIRL, Config, Controller, Explained, Guide, explain
from rhirl.learning.explain import explain_step, idle_in_the_middle, scale_of
from rhirl.learning.objective import expert_windows
from rhirl.planning import Planner, sample
from rhirl.proposals import Apprentice, learn_proposal
from rhirl.simulators import InvertibleSimulator
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.lunar_lander import LunarLanderSimulator
from rhirl.simulators.mujoco import MujocoSimulator
from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.tasks import get_task

PENDULUM = PendulumSimulator()
GUIDED = ("planner.guided=0.5", "iterations=80", "relearn=30")


def push(x: NDArray[Any]) -> NDArray[np.float32]:
    """A proposal that never looks."""
    return np.array([0.75], np.float32)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_controls_of_pendulum_are_found_from_its_states(noise: float) -> None:
    demos = load_demos("pendulum", noise, everything=True).take(2)
    assert demos.controls is not None
    found = explain(PENDULUM, replace(demos, controls=None))
    np.testing.assert_allclose(found.controls, np.clip(demos.controls, -1, 1), atol=2e-3)
    assert found.residuals.max() < 1e-6


def test_the_controls_of_hopper_are_found_where_its_observation_tells_them() -> None:
    demos = load_demos("hopper", 0.5, everything=True)
    assert demos.controls is not None
    simulator, scale = MujocoSimulator("Hopper-v5", threads=1), demos.states().astype(float).std(axis=0)
    times = range(0, 60, 3)
    x = demos.observations[0]
    assert max(np.abs(x[t]).max() for t in times) < 10  # velocities beyond are clipped, and tell less
    found = [explain_step(simulator, simulator.state_from_observation(x[t]), x[t + 1], scale) for t in times]
    errors = [
        np.abs(v - np.clip(demos.controls[0, t], -1, 1)).max() for t, (v, _) in zip(times, found, strict=True)
    ]
    solved = [residual < 1e-6 for _, residual in found]
    assert np.mean(solved) >= 0.9
    assert max(error for error, fine in zip(errors, solved, strict=True) if fine) < 1e-2


def test_local_minima_do_not_stop_the_search_for_ants_controls() -> None:
    """Its truth meets every transition, to rounding; from one beginning less than half of them are found."""
    demos = load_demos("ant27", everything=True)
    assert demos.controls is not None
    simulator, scale = get_task("ant27").simulator(), scale_of(demos)
    assert isinstance(simulator, InvertibleSimulator)
    x, true = demos.observations[0], np.clip(demos.controls[0], -1, 1)
    errors, residuals = [], []
    for t in range(100, 124, 2):
        start = simulator.state_from_observation(x[t])
        reached = simulator.observe(simulator.step(start, true[t]))
        assert (((reached - x[t + 1]) / scale) ** 2).sum() < 1e-10
        v, residual = explain_step(simulator, start, x[t + 1], scale, guess=true[t - 1])
        errors.append(np.abs(v - true[t]).max())
        residuals.append(residual)
    met = np.array(residuals) < 1e-6
    assert met.mean() > 0.6
    assert np.median(np.array(errors)[met]) < 1e-2


def test_an_engine_that_does_nothing_is_off() -> None:
    """Below its threshold the main engine is silent: any such control explains a free fall."""
    simulator = LunarLanderSimulator(threads=1)
    start, scale = simulator.reset(3), np.ones(8)
    fall = simulator.observe(simulator.mean_step(start, np.array([-0.7, 0.2])))
    v, residual = explain_step(simulator, start, fall, scale)
    assert residual < 1e-6
    np.testing.assert_allclose(idle_in_the_middle(simulator, start, v, scale), [-0.5, 0], atol=0.03)
    busy = np.array([0.3, -0.8])
    np.testing.assert_array_equal(idle_in_the_middle(simulator, start, busy, scale), busy)


def test_a_lander_on_its_legs_is_explained_by_how_it_came_to_stand() -> None:
    """Its observation does not tell how the legs hang. Followed through the landing, they are known."""
    demos = load_demos("lunar_lander", everything=True).take(2)
    assert demos.controls is not None
    found = explain(LunarLanderSimulator(threads=1), replace(demos, controls=None))
    stands = demos.observations[:, :-1, 6:].any(axis=-1) & np.isfinite(found.residuals)
    told, true = found.controls[stands, 0] > 0, demos.controls[stands, 0] > 0
    assert stands.sum() > 40
    assert (found.residuals[stands] < 1e-2).mean() > 0.7
    assert (told == true).mean() > 0.8
    flies = ~stands & np.isfinite(found.residuals)
    assert ((found.controls[flies, 0] > 0) == (demos.controls[flies, 0] > 0)).mean() > 0.95


def test_padding_is_neither_explained_nor_learned_from(pendulum_demos: Demonstrations) -> None:
    short = replace(pendulum_demos.take(2), lengths=np.array([4, 7]))
    found = explain(PENDULUM, short)
    assert np.isfinite(found.residuals).sum(axis=1).tolist() == [4, 7]
    assert not found.controls[0, 4:].any()
    clone = BC(replace(short, controls=found.controls), BCConfig(epochs=1), trusted=found.residuals < 1)
    assert len(clone._learn.z) + len(clone._judge.z) == 11


def test_a_share_of_the_samples_is_drawn_around_the_guide() -> None:
    U, guide = jnp.full((6, 2), -0.5), jnp.full((6, 2), 0.5)
    planner = Planner(K=6, M=2000, beta=0.01, guided=0.25)
    V = np.asarray(sample(jax.random.key(0), U, planner, guide))
    np.testing.assert_array_equal(V[0], U)
    np.testing.assert_array_equal(V[-1], guide)
    assert V[1:1500].mean() == pytest.approx(-0.5, abs=0.01)
    assert V[1500:-1].mean() == pytest.approx(0.5, abs=0.01)
    # Without a guide nothing changes, to the bit.
    alone = sample(jax.random.key(0), U, planner)
    np.testing.assert_array_equal(alone, sample(jax.random.key(0), U, replace(planner, guided=0.0)))
    np.testing.assert_array_equal(V[:1500], alone[:1500])


def test_a_guide_follows_its_proposal_through_the_simulator() -> None:
    def swing(x: NDArray[Any]) -> NDArray[np.float32]:
        return np.array([np.sign(x[1])], np.float32)

    state = PENDULUM.reset(5)
    guide = Guide(PENDULUM, swing, 60)
    V = guide.plan(state)
    x = PENDULUM.rollout(state, V[None]).observations[0]
    np.testing.assert_array_equal(V[:, 0], np.sign(x[:-1, 1]))
    assert len(set(V[:, 0])) > 1


def test_a_guide_goes_on_where_the_task_is_lost() -> None:
    hopper = get_task("hopper").simulator()

    def lean(x: NDArray[Any]) -> NDArray[np.float32]:
        return np.full(3, np.tanh(10 * x[1] - 1), np.float32)

    state = hopper.reset(0)
    V = Guide(hopper, lean, 60).plan(state)
    lost = []
    for v in V:
        np.testing.assert_array_equal(v, lean(hopper.observe(state)))
        state = hopper.step(state, v)
        lost.append(hopper.terminated(state))
    assert 3 < lost.index(True) < 59


def test_where_the_guide_is_right_the_plan_goes_there() -> None:
    """The cost wants the control the proposal knows; from a plan of zero, timid samples alone cannot get there."""
    line = JaxSimulator(lambda x, u: x + u, lambda x: x, lambda key: jnp.zeros(1), control_dim=1)

    def cost(x: jax.Array) -> jax.Array:
        return -x[..., 0]

    planner = Planner(K=4, M=64, beta=1e-4, ess=0.05)
    alone = Controller(line, cost, planner).act(line.reset(0))
    led = Controller(line, cost, replace(planner, guided=0.5), proposal=push).act(line.reset(0))
    assert alone[0] < 0.05
    assert led[0] == pytest.approx(0.75, abs=0.05)


def test_a_guide_without_a_proposal_is_an_error_that_says_what_to_do(pendulum_demos: Demonstrations) -> None:
    config = Config(planner=Planner(guided=0.5))
    with pytest.raises(ValueError, match="set guided=0"):
        RHIRL(PENDULUM, pendulum_demos, config)
    blind = JaxSimulator(lambda x, u: x, lambda x: x, lambda key: jnp.zeros(3), control_dim=1)
    with pytest.raises(ValueError, match="state_from_observation"):
        learn_proposal(blind, pendulum_demos)


def test_a_proposal_is_as_good_as_a_clone_of_the_controls_themselves() -> None:
    """Learned from states alone, it predicts the controls of others as one that was told them does."""
    demos, notes = load_demos("pendulum", everything=True), list[str]()
    assert demos.controls is not None
    few, x, v = demos.take(6), demos.observations[6:, :-1], demos.controls[6:]
    assert few.controls is not None
    controls = Explained(np.clip(few.controls, -1, 1), np.zeros(few.controls.shape[:2]))
    missed, told_missed = [], []
    for seed in (0, 1):
        proposal = learn_proposal(PENDULUM, replace(few, controls=None), seed=seed, note=notes.append)
        told = Apprentice(few, controls, size=0, seed=seed)
        told.learn()
        missed.append(np.abs(proposal.act(x) - v).mean())
        told_missed.append(np.abs(told.policy().act(x) - v).mean())
    assert any("6 of 6 demonstrations" in note for note in notes)
    assert np.mean(told_missed) < 0.2
    assert np.mean(missed) < 1.2 * np.mean(told_missed)


def test_a_guided_run_resumes_and_is_evaluated_with_its_own_proposal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: Callable[[Any], list[bytes]]
) -> None:
    config = plan_run("pendulum", noise=0.5, episodes=3, overrides=(*SETTINGS, *GUIDED), evaluations=0)
    whole, halved = RunDirectory(tmp_path / "whole"), RunDirectory(tmp_path / "halved")
    straight = train(whole, config)

    class Crash(BaseException):
        pass

    def crash(progress: Any) -> None:
        if progress.iteration == 40:
            raise Crash

    with pytest.raises(Crash):
        train(halved, config, show=crash)
    before = halved.policy.read_bytes()
    resumed = train(halved, config, resume=True)
    assert bits(resumed.state) == bits(straight.state)
    assert before != halved.policy.read_bytes() == whole.policy.read_bytes()
    task, agent = load_agent(halved)
    env = task.make_env()
    x, _ = env.reset(seed=1)
    agent.reset(1)
    assert -1 <= agent.act(env, x)[0] <= 1
    halved.policy.unlink()
    with pytest.raises(FileNotFoundError):
        load_agent(halved)


def test_an_apprentice_learns_what_it_has_watched(pendulum_demos: Demonstrations) -> None:
    """Where no demonstration goes, it does what it saw the planner do; before, it does not."""
    shape = len(pendulum_demos), pendulum_demos.horizon
    rng = np.random.default_rng(0)
    noisy = rng.normal(-0.5, 0.3, (*shape, 1)).astype(np.float32)
    apprentice = Apprentice(pendulum_demos, Explained(noisy, np.zeros(shape)), size=400)
    apprentice.learn()
    assert apprentice.state.noise == pytest.approx(0.3, abs=0.05)
    assert not apprentice.quiet
    elsewhere = np.concatenate([rng.uniform(-1, 1, (400, 2)), rng.uniform(20, 30, (400, 1))], axis=1)
    before = np.mean([apprentice(x) for x in elsewhere[:20]])
    for done in range(0, 400, 8):
        apprentice.watch(done, elsewhere[done : done + 8], np.full((8, 1), 0.5, np.float32))
    apprentice.relearn(400)
    after = np.mean([apprentice(x) for x in elsewhere[:20]])
    assert after == pytest.approx(0.5, abs=0.1)
    assert before < 0
    assert np.mean([apprentice(x) for x in pendulum_demos.observations[0]]) == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize(("noise", "seen"), [(0.0, 0.06), (0.2, 0.2), (0.5, 0.44)])
def test_controls_tell_how_noisy_the_demonstrator_was(noise: float, seen: float) -> None:
    """Hopper's, as its states tell them; clipping to the box takes some of 0.5 away."""
    demos = load_demos("hopper", noise, everything=True).take(5)
    assert demos.controls is not None
    told = Explained(np.clip(demos.controls, -1, 1), np.zeros(demos.controls.shape[:2]))
    apprentice = Apprentice(replace(demos, controls=None), told, size=0)
    apprentice.learn()
    assert apprentice.state.noise.mean() == pytest.approx(seen, abs=0.05)
    assert apprentice.quiet == (noise == 0)
    if noise:  # nor does clipping hide any of it around controls well inside
        assert apprentice.demonstrated_noise().mean() == pytest.approx(noise, rel=0.06)
    hidden = apprentice.policy().actor.body.weights[0].shape[1]
    assert hidden == (64 if apprentice.quiet else 256)
    before = apprentice.state.actor
    apprentice.relearn(0)
    assert (apprentice.state.actor is before) == apprentice.quiet


def test_ant_without_noise_counts_as_quiet_and_is_cloned_by_the_large_network() -> None:
    demos = load_demos("ant27", everything=True).take(5)
    assert demos.controls is not None
    told = Explained(np.clip(demos.controls, -1, 1), np.zeros(demos.controls.shape[:2]))
    config = configure(get_task("ant27"))
    apprentice = Apprentice(replace(demos, controls=None), told, size=0, clone=config.clone)
    assert apprentice.policy().actor.body.weights[0].shape == (27, 256)
    apprentice.learn()
    assert apprentice.quiet
    assert apprentice.state.noise.mean() == pytest.approx(0.09, abs=0.03)


@pytest.mark.parametrize("absorbing", [False, True])
def test_an_absorbing_demonstration_stays_where_it_ended(absorbing: bool, pendulum_demos: Demonstrations) -> None:
    x = pendulum_demos.observations[:2].copy()
    x[0, 30:] = x[0, 30]
    short = replace(pendulum_demos.take(2), observations=x, lengths=np.array([30, 100]))
    config = Config(planner=Planner(K=5), hidden=(8,), absorbing=absorbing)
    windows = expert_windows(RHIRL(PENDULUM, short, config)._experts, jnp.asarray(60), 5)
    np.testing.assert_allclose(windows.share, [[0.5] * 6] * 2 if absorbing else [[0.0] * 6, [1.0] * 6])
    np.testing.assert_array_equal(windows.observations[0], np.tile(x[0, 30], (6, 1)))
