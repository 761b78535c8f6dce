"""Train an agent of stable-baselines3 on a learned cost, and see what it makes of the task's own reward.

    pip install stable-baselines3        # beside rhirl, in the same environment
    rhirl train pendulum --method firl --out runs/firl
    python examples/learned_reward.py runs/firl

`LearnedReward` pays −g(x) instead of the environment's reward, so whatever learns from Gymnasium environments can
learn from a cost of rhirl: one that f-IRL or AIRL learned, or RHIRL's own (whose cost is made for planning a short
way ahead; a policy needs γ of about 1 − 1/K to see no further).
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import gymnasium
import numpy as np

from rhirl import load_cost
from rhirl.baselines import LearnedReward
from rhirl.experiments import RunDirectory
from rhirl.tasks import Task, get_task


def make(task: Task, run: RunDirectory) -> LearnedReward:
    """Make the task's environment, cut at T, paying the learned cost."""
    return LearnedReward(gymnasium.wrappers.TimeLimit(task.make_env(), task.T), load_cost(run.cost))


def main() -> None:
    """Train and evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run directory with a cost")
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    run = RunDirectory(options.run)
    task = get_task(run.config().task)
    env = make(task, run)
    settings = {"gamma": options.gamma, "learning_rate": 1e-3, "policy_kwargs": {"net_arch": [64, 64]}}
    # A learned cost spans a fraction of one; on Pendulum, f-IRL's own SAC ends at 0.005, far from the usual 1.
    settings["ent_coef"] = "auto_0.01"
    agent = import_module("stable_baselines3").SAC("MlpPolicy", env, seed=options.seed, **settings)
    agent.learn(options.steps)

    returns = []
    for seed in range(10):
        x, _ = env.reset(seed=1_000 + seed)
        total, over = 0.0, False
        while not over:
            u, _ = agent.predict(x, deterministic=True)
            x, _, terminated, truncated, info = env.step(u)
            total, over = total + info["own_reward"], terminated or truncated
        returns.append(total)
    print(f"own return of the task, never seen in training: {np.mean(returns):.1f} ± {np.std(returns):.1f}")


if __name__ == "__main__":
    main()
