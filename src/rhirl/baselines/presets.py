"""Settings of the rivals, by method, preset and task.

`paper` has what the paper reports: SAC with α = 0.2, reward scale 0.2, (64, 64) policies and its table of learning
rates, most of them small; what it leaves open is as in f-IRL's code, on which its baselines are built. `default` is
what we recommend: a learned temperature, larger critics, absorbing states, and a discriminator that sees recent
states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rhirl.baselines.airl import AIRLConfig
from rhirl.baselines.bc import BCConfig
from rhirl.baselines.firl import FIRLConfig
from rhirl.baselines.gail import GAILConfig
from rhirl.baselines.practice import ImitationConfig

Settings = dict[str, Any]

CONFIGS: dict[str, type[Any]] = {
    "firl": FIRLConfig,
    "airl": AIRLConfig,
    "gail": GAILConfig,
    "bc": BCConfig,
    "reoptimise": ImitationConfig,
}

STEPS = {"pendulum": 40_000, "lunar_lander": 300_000}
"""Environment steps by task; a million on the others."""
SMALL = {"hidden": (64, 64), "learning_rate": 1e-3, "envs": 8, "round_steps": 16, "random_steps": 1_000}
LANDER = {"layer_norm": True, "envs": 8, "round_steps": 32, "update_ratio": 0.5, "random_steps": 5_000}
LOCOMOTION = {"layer_norm": True, "envs": 16, "round_steps": 32, "update_ratio": 0.5, "random_steps": 10_000}
SAC: dict[str, Settings] = {"pendulum": {**SMALL, "capacity": 100_000}, "lunar_lander": LANDER}
"""The SAC inside, by task; `LOCOMOTION` for the others."""

METHODS: dict[str, Settings] = {
    "firl": {"updates": 32},
    "airl": {"updates": 64},
    "gail": {"updates": 64},
    "bc": {},
    "reoptimise": {},
}
"""What differs from the defaults of a method's configuration, on every task."""

TERMINATING_AIRL: Settings = {"uniform": 0.05, "absorbing": False}
"""AIRL where episodes can end, with temperature 1: its discriminator compares f with log π, so the policy has to be
as random as f says, as in the theory. With a learned temperature the policy stays narrow whatever f says, and its
density alone tells most of the two sides apart. What an end is worth is left to V: a last state that is paid for
ever weighs 1/(1 − γ) times as much as any other step. The three were found together (docs/baselines.md)."""

PAPER_RATES = {"pendulum": 1e-4, "lunar_lander": 1e-3, "hopper": 1e-5, "walker2d": 1e-5, "ant": 3e-4, "ant27": 3e-4}
"""The paper's learning rates of SAC."""
PAPER_REWARD_RATES = {"ant": 1e-4, "ant27": 1e-4}
"""The paper's learning rates of reward, value and discriminator; 1e-5 for the others."""


def presets(method: str, task: str) -> Mapping[str, Settings]:
    """Return a method's presets for a task, as fields of its configuration."""
    hidden = (32, 32) if task == "pendulum" else (64, 64)
    if method == "bc":
        published = {"hidden": hidden, "lr": 1e-3, "weight_decay": 0.0, "batch": 1000, "epochs": 10_000}
        return {"default": {**METHODS["bc"]}, "paper": published}
    common = {"steps": STEPS.get(task, 1_000_000), "hidden": hidden}
    default = {**common, "sac": SAC.get(task, LOCOMOTION), **METHODS[method]}
    if method == "airl" and task != "pendulum":
        default |= {**TERMINATING_AIRL, "sac": {**default["sac"], "temperature": 1.0}}
    return {
        "default": default,
        "paper": {**common, **_published(method, task)},
    }


def _published(method: str, task: str) -> Settings:
    rate = PAPER_REWARD_RATES.get(task, 1e-5)
    sac = {
        "hidden": (64, 64),
        "learning_rate": PAPER_RATES.get(task, 1e-5),
        "batch": 100,
        "temperature": 0.2,
        "reward_scale": 0.2,
        "capacity": 100_000 if task in ("pendulum", "lunar_lander") else 1_000_000,
        "envs": 1,
        "round_steps": 50,
        "random_steps": 1_000,
    }
    learned = {"lr": rate, "weight_decay": 1e-3, "absorbing": False, "average": 0.0}
    if method == "firl":
        # A lesson every 5,000 steps; the discriminator's settings are the authors', the paper gives the reward's.
        reward = {"reward_lr": rate, "reward_decay": 1e-3, "gradient_penalty": 0.0}
        return {
            **learned, "sac": sac, "lr": 3e-4, "weight_decay": 1e-4, "batch": 800, "updates": 1_200, "every": 100,
            **reward,
        }  # fmt: skip
    if method == "gail":
        return {**learned, "sac": sac, "gradient_penalty": 4.0, "updates": 50, "recent": 1_000_000}
    if method == "airl":
        unshaped = {"gradient_penalty": 4.0, "updates": 50, "recent": 1_000_000, "shaped": False}
        return {**learned, "sac": sac, **unshaped}
    return {**learned, "sac": sac}
