"""The rivals as people run them: the same run directory, exact resume, evaluation, and words for mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from rhirl.baselines import BC, FIRL, BCConfig, ControlNoise, FIRLConfig, ImitationConfig, LearnedReward
from rhirl.baselines.discriminator import logit
from rhirl.baselines.firl import covariance, surprise
from rhirl.baselines.presets import CONFIGS, presets
from rhirl.cli import main
from rhirl.costs import MLP, Cost, Normaliser, load_cost
from rhirl.demos import DemonstrationError, load_demos, write_demos
from rhirl.experiments import RunDirectory, RunError, train
from rhirl.experiments.checkpoint import checkpoints
from rhirl.experiments.methods import METHODS, get_method
from rhirl.experiments.methods.rivals import make_system
from rhirl.experiments.plan import plan_run
from rhirl.experiments.presets import build, choose, to_dict
from rhirl.experiments.reoptimise import reoptimise
from rhirl.experiments.train import Progress
from rhirl.rl import Policy, SACConfig
from rhirl.tasks import TASKS

RIVALS = ("firl", "airl", "gail", "bc")
SETTINGS = {
    "bc": ("epochs=60", "patience=60", "hidden=(8,)"),
    **dict.fromkeys(
        ("firl", "airl", "gail"),
        (
            "steps=480", "hidden=(8,)", "updates=2", "batch=16", "sac.hidden=(8,)", "sac.batch=16", "sac.envs=2",
            "sac.round_steps=4", "sac.random_steps=40", "sac.capacity=400", "sac.update_ratio=0.25",
        ),
    ),
}  # fmt: skip


class Crash(BaseException):
    """The process dies here; nothing may catch it."""


@pytest.fixture(scope="module", autouse=True)
def quick(quick_compilation: None) -> Iterator[None]:
    """Evaluate one episode only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("rhirl.experiments.train"), "EVALUATION_EPISODES", 1)
        yield


def learn(run: RunDirectory, method: str, **kwargs: Any) -> None:
    config = plan_run("pendulum", method, noise=0.2, episodes=3, overrides=SETTINGS[method])
    train(run, config, resume=run.exists(), **kwargs)


def outcome(run: RunDirectory) -> tuple[Any, ...]:
    """Everything a run leaves behind that must not depend on how often it was interrupted."""
    lines = [{k: v for k, v in line.items() if not k.startswith("time/")} for line in run.read_metrics()]
    learned = [path.read_bytes() for path in (run.policy, run.cost) if path.exists()]
    return (lines, checkpoints(run.checkpoints)[-1].read_bytes(), *learned)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunDirectory]:
    """A small finished run of every rival."""
    found = {method: RunDirectory(tmp_path_factory.mktemp("rivals") / method) for method in RIVALS}
    for method, run in found.items():
        learn(run, method)
    return found


@pytest.mark.parametrize("method", RIVALS)
def test_a_run_in_two_halves_equals_the_whole(method: str, runs: dict[str, RunDirectory], tmp_path: Path) -> None:
    def crash(progress: Progress) -> None:
        if progress.iteration == 40:
            raise Crash

    run = RunDirectory(tmp_path / "run")
    with pytest.raises(Crash):
        learn(run, method, show=crash)
    learn(run, method)
    whole, halves = outcome(runs[method]), outcome(run)
    assert [line["iteration"] for line in halves[0]] == [20, 40, 60]
    assert halves == whole


@pytest.mark.parametrize("method", RIVALS)
def test_lines_are_finite_and_count_steps(method: str, runs: dict[str, RunDirectory]) -> None:
    lines = runs[method].read_metrics()
    assert all(np.isfinite(value) for line in lines for value in line.values())
    assert [line["steps/executed"] for line in lines] == ([0, 0, 0] if method == "bc" else [160, 320, 480])
    assert "eval/return" in lines[-1]
    assert np.isfinite(lines[-1]["train/loss"])
    assert Policy.load(runs[method].policy).control_dim == 1
    assert runs[method].cost.exists() == (method != "bc")


@pytest.mark.parametrize("method", RIVALS)
def test_evaluation_and_report_work_as_for_rhirl(
    method: str, runs: dict[str, RunDirectory], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(runs[method].path)
    main(["eval", path, "--episodes", "2", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (result["method"], result["noise"], len(result["returns"])) == (method, 0.2, 2)
    main(["report", path])
    assert (runs[method].path / "report.html").read_text().count("data:image/") == (2 if method == "bc" else 3)


def test_a_cost_is_optimised_anew_under_other_noise(
    runs: dict[str, RunDirectory], capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs["firl"]
    main(["eval", str(run.path), "--noise", "0.5", "--reoptimise", "--episodes", "2", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (result["method"], result["learned_at_noise"], result["noise"]) == ("firl", 0.2, 0.5)
    assert result["reoptimised"] is True
    inner = RunDirectory(run.path / "reoptimised" / "noise0.5")
    assert inner.cost.read_bytes() == run.cost.read_bytes()
    assert inner.policy.read_bytes() != run.policy.read_bytes()
    assert (inner.config().method, inner.config().noise) == ("reoptimise", 0.5)


@pytest.mark.parametrize("method", ["gail", "bc"])
def test_what_has_no_stationary_cost_cannot_be_optimised_anew(method: str, runs: dict[str, RunDirectory]) -> None:
    with pytest.raises(RunError, match="acts as it is"):
        reoptimise(runs[method], 0.5)


@pytest.mark.parametrize("method", ["airl", "bc"])
def test_methods_that_need_controls_say_so(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "states.npz"
    write_demos(load_demos("pendulum", episodes=3), path)
    with pytest.raises(SystemExit):
        main(["train", "pendulum", "--method", method, "--demos", str(path), "--out", str(tmp_path / "run")])
    said = capsys.readouterr().err
    assert "holds no controls" in said
    assert "rhirl, firl and gail" in said
    with pytest.raises(DemonstrationError, match="hold no controls"):
        BC(load_demos("pendulum", episodes=3))


@pytest.mark.parametrize("method", RIVALS)
def test_rivals_refuse_images_before_a_run_begins(method: str, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(DemonstrationError, match="car_racing are images, from which only rhirl learns"):
        train(run, plan_run("car_racing", method, episodes=1))
    assert not run.path.exists()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_every_method_has_both_presets_on_every_task(method: str, task: Any) -> None:
    found = METHODS[method].presets(task)
    for preset in ("default", "paper"):
        config = choose(METHODS[method].config, found, task.name, preset)
        assert build(METHODS[method].config, json.loads(json.dumps(to_dict(config)))) == config
        hash(config)


@pytest.mark.parametrize(("task", "rate", "reward_rate"), [("hopper", 1e-5, 1e-5), ("ant", 3e-4, 1e-4)])
def test_the_paper_preset_has_the_papers_numbers(task: str, rate: float, reward_rate: float) -> None:
    config = choose(CONFIGS["firl"], presets("firl", task), task, "paper")
    sac = config.sac
    assert (sac.learning_rate, sac.temperature, sac.reward_scale, sac.hidden) == (rate, 0.2, 0.2, (64, 64))
    assert (config.reward_lr, config.reward_decay, config.divergence) == (reward_rate, 1e-3, "js")
    assert choose(CONFIGS["gail"], presets("gail", task), task, "paper").gradient_penalty == 4.0


def test_unknown_methods_and_forms_are_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no method 'gale'; there are rhirl, firl"):
        get_method("gale")
    with pytest.raises(ValueError, match="reward is one of logit, positive, negative, not 'sum'"):
        plan_run("pendulum", "gail", overrides=["reward=sum"])


@pytest.fixture(scope="module")
def firl() -> Iterator[FIRL]:
    """f-IRL on Pendulum with 18 lessons, its discriminator quick enough to be right at the first of them."""
    sac = SACConfig(
        hidden=(16,), batch=16, envs=4, round_steps=50, random_steps=400, capacity=2_000, update_ratio=0.1
    )
    config = FIRLConfig(sac=sac, steps=4_000, hidden=(16,), lr=1e-2, reward_lr=1e-2, updates=20, batch=64)
    learner = FIRL(partial(make_system, "pendulum", 0.0), load_demos("pendulum", episodes=3), config)
    yield learner.learn()
    learner.close()


UPRIGHT, HANGING = jnp.array([1.0, 0.0, 0.0]), jnp.array([-1.0, 0.0, 0.0])


def test_firl_finds_hanging_dearer_than_upright(firl: FIRL) -> None:
    """The demonstrations swing up and stay there; so small a policy does not, and hangs."""
    ratio = Cost(firl.normalise, firl.parameters.discriminator)
    assert firl.episodes.finished[:, 1:, 0].mean() < -0.2
    assert firl.experts.episodes[:, 1:, 0].mean() > 0.5
    assert logit(ratio, UPRIGHT) - logit(ratio, HANGING) > 2.0
    assert firl.cost(HANGING) - firl.cost(UPRIGHT) > 1.0
    assert firl.act(np.asarray(HANGING)).shape == (1,)


@pytest.mark.parametrize("divergence", ["js", "rkl", "fkl"])
def test_firls_covariance_lowers_the_cost_of_what_is_demonstrated(divergence: str, firl: FIRL) -> None:
    """A reward w cos θ: descent raises w, whether or not demonstrations join the policy's episodes."""
    ratio, lesson = Cost(firl.normalise, firl.parameters.discriminator), firl.lesson()

    def slope(trajectories: Array) -> Array:
        h, cosine = surprise(divergence, logit(ratio, trajectories)), trajectories[..., 0]
        return jax.grad(lambda w: covariance(h, w * cosine, jnp.ones(len(h))))(0.0)

    assert slope(lesson.finished[:, 1:]) < 0
    assert slope(jnp.concatenate([lesson.finished, lesson.experts.episodes])[:, 1:]) < 0


def test_cloning_finds_a_linear_law_and_stops_by_itself() -> None:
    demos = load_demos("pendulum", episodes=6, everything=True)
    law = np.tanh(demos.observations[:, :-1] @ np.array([0.5, -0.8, 0.1], np.float32))[..., None]
    clone = BC(replace(demos, controls=law), BCConfig(epochs=300, patience=40, hidden=(16,), lr=3e-3)).learn()
    x = demos.observations[0, 10]
    assert clone.act(x) == pytest.approx(law[0, 10], abs=0.05)
    policy = clone.policy()
    np.testing.assert_allclose(policy.act(x), clone.act(x), rtol=1e-5)
    edges = np.sign(np.random.default_rng(0).normal(size=law.shape)).astype(np.float32)
    noise = BC(replace(demos, controls=edges), BCConfig(hidden=(8,)))
    assert np.isfinite(float(noise.step()["loss"]))
    stubborn = BC(demos, BCConfig(epochs=500, patience=3, hidden=(16,), lr=1e-2)).learn()
    assert stubborn.iteration < 500


def test_control_noise_follows_from_the_seed_and_stays_in_the_box() -> None:
    env = ControlNoise(gymnasium.make("Pendulum-v1").unwrapped, 0.5)

    def play(seed: int) -> np.ndarray:
        env.reset(seed=seed)
        return np.stack([env.step(np.array([2.0], np.float32))[0] for _ in range(20)])

    np.testing.assert_array_equal(play(3), play(3))
    assert not np.array_equal(play(3), play(4))


def test_the_wrapper_pays_the_learned_cost_and_keeps_the_own_reward() -> None:
    normalise = Normaliser.of(np.random.default_rng(0).normal(size=(50, 3)))
    cost = Cost(normalise, MLP.of(jax.random.key(0), 3, (8, 4)))
    env = LearnedReward(gymnasium.make("Pendulum-v1"), cost)
    plain = gymnasium.make("Pendulum-v1")
    env.reset(seed=0)
    plain.reset(seed=0)
    for _ in range(5):
        x, paid, _, _, info = env.step(np.array([1.0], np.float32))
        _, own, *_ = plain.step(np.array([1.0], np.float32))
        assert paid == pytest.approx(-float(cost(jnp.asarray(x))), rel=1e-5)
        assert info["own_reward"] == pytest.approx(float(own))
    with pytest.raises(ValueError, match="learned on 3 observations"):
        LearnedReward(gymnasium.make("MountainCarContinuous-v0"), cost)


def test_a_costs_file_is_the_discriminators(runs: dict[str, RunDirectory]) -> None:
    cost = load_cost(runs["gail"].cost)
    assert np.isfinite(np.asarray(cost(jnp.zeros((4, 3))))).all()
    assert ImitationConfig(sac=SACConfig(envs=2, round_steps=4), steps=17).iterations == 3
