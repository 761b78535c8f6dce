"""A proposal rehearses amid noise: what its steps were worth, and that it learns to come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conftest import SETTINGS
from rhirl.costs import MLP, Cost, normaliser_of
from rhirl.demos import Metadata, from_episodes
from rhirl.experiments import RunDirectory, RunError, evaluate_run, train
from rhirl.experiments.plan import plan_run
from rhirl.experiments.reoptimise import reoptimise
from rhirl.experiments.train import Progress
from rhirl.learning import Config
from rhirl.proposals import Rehearsal, Rehearsed
from rhirl.rl import Actor, Policy, to_numpy
from rhirl.rl.ppo import Steps, advantages, control, log_likelihood, surrogate
from rhirl.simulators.jax import JaxSimulator

NOISE = jnp.array([0.3])


def test_advantages_end_where_the_task_is_lost() -> None:
    r = jnp.array([[1.0, 2.0, 3.0], [1.0, 9.0, 9.0]])
    V = jnp.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    # The second system was lost by its second step, t = 1: that step earns nothing and nothing comes behind it.
    A = advantages(r, V, jnp.array([3, 1]), gamma=0.5, trace=0.8)
    last = 3 + 0.5 * 4 - 3
    middle = 2 + 0.5 * 3 - 2 + 0.4 * last
    lost = 0 - 6
    expected = [[1 + 0.5 * 2 - 1 + 0.4 * middle, middle, last], [1 + 0.5 * 6 - 5 + 0.4 * lost, lost, 0]]
    np.testing.assert_allclose(A, expected, rtol=1e-6)


def test_the_first_step_follows_the_policy_gradient() -> None:
    """Where no ratio has moved yet, the gradient is −E A (v − u)/σ² ∂u."""
    actor = Actor.create(jax.random.key(0), 2, 1, (8,))
    x, v, A = (jax.random.normal(jax.random.key(k), shape) for k, shape in ((1, (50, 2)), (2, (50, 1)), (3, (50,))))
    u = control(actor, x)
    steps = Steps(x, u, v, A, A)
    expected = jax.grad(lambda actor: -(A[:, None] * (v - u) / NOISE**2 * control(actor, x)).sum(-1).mean())(actor)
    found = jax.grad(surrogate)(actor, steps, NOISE)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_ratio_beyond_the_clip_is_no_reason_to_go_further() -> None:
    actor = Actor.create(jax.random.key(0), 2, 1, (8,))
    x = jnp.ones((1, 2))
    u = control(actor, x)
    taken, before = u + 0.1, u - 0.3  # the policy has come nearer to what was done, which was good
    assert log_likelihood(u, taken, NOISE)[0] - log_likelihood(before, taken, NOISE)[0] > np.log(1.2)
    gradient = jax.grad(surrogate)(actor, Steps(x, before, taken, jnp.ones(1), jnp.ones(1)), NOISE)
    assert all(not leaf.any() for leaf in jax.tree.leaves(gradient))


RIDGE = JaxSimulator(
    lambda x, u: 1.1 * x + 0.2 * u,
    lambda x: x,
    lambda key: jax.random.uniform(key, (1,), minval=-0.5, maxval=0.5),
    control_dim=1,
    terminated=lambda x: jnp.abs(x[0]) > 1.0,
)
"""A point that falls off a ridge unless it is pushed back to the middle."""


def ridge(enough: float) -> tuple[Rehearsal, Rehearsed]:
    """Rehearse on the ridge, from a policy that knows nothing."""
    meta = Metadata("ridge", "ridge", 0.3, (0.0,), (0,), "nobody", {})
    demos = from_episodes([np.zeros((51, 1), np.float32)], meta, horizon=50)
    # A cost of nothing at all: what is left of the reward is to go on.
    network = jax.tree.map(jnp.zeros_like, MLP.of(jax.random.key(0), 1, (8,)))
    cost = Cost(normaliser_of(np.array([[-1.0], [1.0]]), floor=1e-2, limit=5.0), network)
    pairs = np.zeros((10, 1), np.float32), np.zeros((10, 1), np.float32)
    config = Config(beyond=10, span=30, hidden=(32,))
    rehearsal = Rehearsal(RIDGE, demos, config, pairs, cost, seed=0, enough=enough)
    return rehearsal, rehearsal.begin(Actor.create(jax.random.key(1), 1, 1, (256, 256)), np.array([0.3]))


def test_who_rehearses_learns_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rhirl.proposals.rehearsal.STEPS", 3_000)
    rehearsal, state = ridge(enough=0.0)
    lost, rewards = [], []
    for _ in range(15):
        state, report = rehearsal.round(state)
        lost.append(report.lost)
        rewards.append(report.reward)
    assert lost[0] > 0.8, lost
    assert lost[-1] < 0.3, lost
    assert rewards[-1] > rewards[0]
    pushed = Policy(to_numpy(state.actor)).act(np.array([[-0.8], [0.8]], np.float32))[:, 0]
    assert pushed[0] > 0.3
    assert pushed[1] < -0.3


def test_who_loses_little_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rhirl.proposals.rehearsal.STEPS", 300)
    rehearsal, state = ridge(enough=1.1)  # less than all of them lost is little then
    left, report = rehearsal.round(state)
    assert report.lost > 0.5
    assert left.settled
    assert left.round == 0
    assert left.led > 0
    assert left.actor is state.actor
    improved, _ = ridge(enough=0.0)[0].round(state)
    assert not improved.settled
    assert improved.round == 1
    assert not np.array_equal(jax.tree.leaves(improved.actor)[0], jax.tree.leaves(state.actor)[0])


REHEARSED = (
    *SETTINGS, "planner.guided=0.5", "planner.K=5", "starts=0.5", "beyond=5", "wary=0", "deploy=None", "span=10",
    "rehearsals=3",
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("STEPS", 200), ("UPDATES", 2), ("BATCH", 32), ("DEMONSTRATED", 8)):
        monkeypatch.setattr(f"rhirl.proposals.rehearsal.{name}", value)
    monkeypatch.setattr("rhirl.experiments.methods.ours.ENOUGH", 0.0)  # in ten steps nobody is lost


def test_a_noisy_run_rehearses_in_the_end_and_goes_on_exactly_there(tmp_path: Path, small: None) -> None:
    config = plan_run("hopper", noise=0.5, episodes=2, overrides=REHEARSED, evaluations=0)
    whole = RunDirectory(tmp_path / "whole")
    learner: Any = train(whole, config)
    learned = config.hyper["iterations"]
    assert learner.iteration == learner.iterations == learned + 3
    last = whole.read_metrics()[-1]
    assert last["iteration"] == learned + 3
    assert 0 <= last["rehearsal/lost"] <= 1
    assert last["steps/simulated"] > learner.rhirl.state.simulated
    # From the checkpoint before the rehearsals, they are made again, and end in the same bits.
    (whole.checkpoints / f"{learned + 3:010d}.safetensors").unlink()
    before = whole.policy.read_bytes()
    train(whole, config, resume=True)
    assert whole.policy.read_bytes() == before


def test_a_quiet_run_has_nothing_to_rehearse(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rhirl.proposals.apprentice.QUIET", 10.0)  # so few demonstrations make no clone that fits
    config = plan_run("hopper", noise=0.0, episodes=2, overrides=REHEARSED, evaluations=0)
    shown: list[Progress] = []
    learner: Any = train(RunDirectory(tmp_path / "quiet"), config, show=shown.append)
    assert learner.finished
    assert shown[0].iteration < shown[0].iterations
    assert shown[-1].iteration == shown[-1].iterations
    assert learner.iteration == config.hyper["iterations"]


def test_a_run_rehearses_amid_its_systems_noise_and_until_little_is_lost(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: dict[str, Any] = {}
    for enough in (0.0, 1.1):
        monkeypatch.setattr("rhirl.experiments.methods.ours.ENOUGH", enough)
        config = plan_run("hopper", noise=0.5, episodes=2, overrides=REHEARSED, evaluations=0)
        learned[str(enough)] = train(RunDirectory(tmp_path / str(enough)), config)
    np.testing.assert_array_equal(learned["0.0"].state.rehearsed.noise, np.full(3, 0.5, np.float32))
    assert learned["0.0"].iteration == config.hyper["iterations"] + 3
    # Whoever loses little is asked once, and keeps the proposal it has cloned.
    assert learned["1.1"].finished
    assert learned["1.1"].iteration == config.hyper["iterations"]
    assert "rehearsal/lost" in RunDirectory(tmp_path / "1.1").read_metrics()[-1]


def test_without_noise_of_the_system_nothing_is_rehearsed(tmp_path: Path, small: None) -> None:
    config = plan_run("hopper", noise=0.0, episodes=2, overrides=REHEARSED, evaluations=0)
    learner: Any = train(RunDirectory(tmp_path / "still"), config)
    assert not learner.apprentice.quiet  # so few demonstrations make no clone that fits
    assert learner.iteration == learner.iterations == config.hyper["iterations"]


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_amid_noise_a_run_may_learn_as_it_will_act(noise: float, tmp_path: Path, small: None) -> None:
    own = ("as_acting=True", "exact=True", "amid_noise.K=3", "amid_noise.M=7")
    config = plan_run("hopper", noise=noise, episodes=2, overrides=(*REHEARSED[:-1], *own), evaluations=0)
    learner: Any = train(RunDirectory(tmp_path), config)
    rhirl, planner = learner.rhirl, config.hyper["amid_noise" if noise else "planner"]
    assert (planner["K"], planner["M"]) == (rhirl.config.planner.K, rhirl.config.planner.M)
    assert rhirl.state.simulated == rhirl.state.executed * planner["K"] * planner["M"]
    # Rollouts are what steps are, to the last bit, or those of the cheaper model.
    state, v = rhirl.simulator.reset(0), np.full(3, 0.5, np.float32)
    seen = rhirl.simulator.rollout(state, v[None, None]).observations[0, 1]
    exact = rhirl.simulator.observe(rhirl.simulator.step(state, v))
    assert np.array_equal(seen, exact.astype(seen.dtype)) == bool(noise)
    np.testing.assert_allclose(seen, exact, atol=0.1)


def test_a_quiet_costs_proposal_rehearses_under_other_noise(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rhirl.experiments.reoptimise.ROUNDS", 2)
    config = plan_run("hopper", noise=0.0, episodes=2, overrides=REHEARSED[:-1], evaluations=0)
    learned = RunDirectory(tmp_path / "quiet")
    train(learned, config)
    anew = reoptimise(learned, 0.5)
    asked = anew.config()
    # Under 0.5, from demonstrations of 0: none of the other noise is ever seen.
    assert (asked.method, asked.noise, asked.shown) == ("rehearse", 0.5, 0.0)
    assert anew.path == learned.path / "reoptimised" / "noise0.5"
    assert anew.cost.read_bytes() == learned.cost.read_bytes()
    assert anew.policy.read_bytes() != learned.policy.read_bytes()
    last = anew.read_metrics()[-1]
    assert (last["iteration"], last["steps/executed"]) == (2, 0)
    assert last["steps/simulated"] > 0
    result = evaluate_run(learned, episodes=2, noise=0.5, policy=anew)
    assert (result["reoptimised"], result["learned_at_noise"], result["noise"]) == (True, 0.0, 0.5)
    # What was cut short goes on exactly: the first round's checkpoint leads to the same policy.
    before = anew.policy.read_bytes()
    (anew.checkpoints / f"{2:010d}.safetensors").unlink()
    assert reoptimise(learned, 0.5).policy.read_bytes() == before


def test_without_a_proposal_there_is_nothing_to_rehearse(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.begin(plan_run("pendulum"), {})
    with pytest.raises(RunError, match="plans anew anyway"):
        reoptimise(run, 0.5)


def test_rehearsals_need_to_know_when_a_loss_counts() -> None:
    with pytest.raises(ValueError, match="beyond > 0"):
        Config(rehearsals=3)
    with pytest.raises(ValueError, match="number of rounds"):
        Config(rehearsals=-1, beyond=3)
