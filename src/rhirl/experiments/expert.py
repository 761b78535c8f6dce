"""Train the expert that demonstrates: SAC in the plain environment, in a run directory like any other.

config.json, meta.json, metrics.jsonl     as for every run
checkpoints/sac.safetensors               learner, replay buffer and running episodes: resume is exact
policy.safetensors, card.json             the best policy evaluated, and what it scores on fresh episodes
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from rhirl.experiments.agents import PolicyAgent, about
from rhirl.experiments.evaluate import evaluate
from rhirl.experiments.interrupt import StoppedError, stop_requested
from rhirl.experiments.run import RunConfig, RunDirectory, RunError
from rhirl.experiments.seeds import REFERENCE, VALIDATION, episode_seeds
from rhirl.experiments.train import Progress
from rhirl.machine import surroundings
from rhirl.rl import SAC, Policy, SACConfig
from rhirl.tasks import Task, get_task

EVALUATIONS, EVALUATION_EPISODES, FINAL_EPISODES = 20, 5, 100


def plan_expert(task: Task, *, seed: int = 0, steps: int | None = None) -> RunConfig:
    """Lay down how the task's expert is trained."""
    if task.demonstrator != "policy":
        raise ValueError(
            f"nothing to train: the expert of {task.name} is a {task.demonstrator} who plans on the true reward, "
            f"and its demonstrations come along: rhirl train {task.name}"
        )
    settings = dict(task.expert)
    total = steps or settings.pop("steps")
    settings.pop("steps", None)
    hyper = {"steps": total, **asdict(SACConfig(**settings, seed=seed))}
    return RunConfig(task.name, "sac", 0.0, seed, "default", "none", 0, hyper)


def train_expert(
    run: RunDirectory, config: RunConfig, *, resume: bool = False, show: Callable[[Progress], None] = lambda _: None
) -> dict[str, Any]:
    """Train, keep the policy that evaluates best, and score it; returns the card."""
    if resume:
        config = run.config()
    elif run.exists():
        raise RunError(f"{run.path} holds a run already; go on with --resume, or choose another --out")
    task = get_task(config.task)
    steps, settings = _split(config.hyper)
    sac = SAC(settings, task.make_env, task.T)
    state = run.checkpoints / "sac.safetensors"
    if resume:
        sac.restore(state)
        run.rewind_metrics(sac.steps)
    else:
        run.begin(config, surroundings())
        run.checkpoints.mkdir(parents=True, exist_ok=True)
    best = max((line["eval/return"] for line in run.read_metrics()), default=-np.inf)
    seeds = episode_seeds(VALIDATION, config.seed, EVALUATION_EPISODES)
    with stop_requested() as stop:
        while sac.steps < steps:
            target = min(steps, (sac.steps * EVALUATIONS // steps + 1) * steps // EVALUATIONS)
            began, before = time.perf_counter(), sac.steps
            metrics: dict[str, Any] = {}
            for round_ in sac.train(target):
                metrics = round_.metrics
                if stop():
                    break
            policy = sac.policy(**about(task))
            score = float(evaluate(task, PolicyAgent(policy), seeds).mean())
            line = {
                "iteration": sac.steps,
                "steps/executed": sac.steps,
                "steps/updates": int(sac.learner.updates),
                "eval/return": score,
                **{f"train/{name}": float(value) for name, value in metrics.items()},
                "time/steps_per_s": (sac.steps - before) / (time.perf_counter() - began),
            }
            if score > best:
                best = score
                policy.save(run.path / "policy.safetensors")
            run.append_metrics(line)
            sac.save(state)
            show(Progress(sac.steps, steps, line, best))
            if stop() and sac.steps < steps:
                sac.close()
                raise StoppedError(f"stopped after {sac.steps} of {steps} steps; everything is saved")
    sac.close()
    return _card(run, task, config)


def _card(run: RunDirectory, task: Task, config: RunConfig) -> dict[str, Any]:
    policy = Policy.load(run.path / "policy.safetensors")
    returns = evaluate(task, PolicyAgent(policy), episode_seeds(REFERENCE, config.seed, FINAL_EPISODES))
    card = {
        "task": task.name,
        "env_id": task.env_id,
        "episodes": FINAL_EPISODES,
        "return_mean": float(returns.mean()),
        "return_std": float(returns.std()),
        "return_min": float(returns.min()),
        "paper_expert": task.paper.get("expert", {}).get("0"),
        "returns": returns.tolist(),
        "settings": dict(config.hyper),
        **surroundings(),
    }
    run.write_json("card.json", card)
    return card


def _split(hyper: Any) -> tuple[int, SACConfig]:
    settings: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in hyper.items()}
    return int(settings.pop("steps")), SACConfig(**settings)
