"""Hopper, Walker2d and Ant: Gymnasium's MuJoCo tasks, one thousand steps long.

The planner rolls out a cheaper model: one long step of implicitfast for Hopper, one of RK4 for Walker2d, two of
implicitfast for Ant (docs/simulators-mujoco.md measures the error); everything that is executed or scored is the
environment's own.
Presets `paper` are the published settings. Presets `default` are where a study on Hopper ended
(docs/departures.md) and serve Walker2d as well, which walks faster with softer weights when it acts
(docs/tasks/walker2d.md); Ant's differ where its long steps ask for it (docs/tasks/ant.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from rhirl.simulators import EnvironmentSimulator
from rhirl.tasks.task import Task, paper_returns

PACKAGES = ("gymnasium", "mujoco")
EXPERT = {
    "steps": 3_000_000,
    "layer_norm": True,
    "envs": 16,
    "round_steps": 8,
    "random_steps": 10_000,
    "update_ratio": 0.5,
}


def _presets(
    K: int,
    M: int,
    beta: float,
    iterations: int,
    acting_ess: float = 0.1,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, dict[str, Any]]:
    common = {"hidden": (64, 64), "lr": 1e-4, "weight_decay": 8e-5, "iterations": iterations}
    published = {"K": K, "M": M, "beta": beta, "alpha": 0.5, "lam": 0.1, "control_term": 1.0, "nominal": False}
    planner = {"K": min(K, 20), "survive": True}
    return {
        "paper": {"planner": published, "parallel": 1, "average": 0.0, **common},
        "default": {
            "planner": {"M": 100, "beta": 0.1, "guided": 0.5, "ess": 0.05, **planner},
            "deploy": {"M": 60, "beta": 0.02, "guided": 0.8, "ess": acting_ess, **planner},
            "beyond": 150,
            "wary": 4.0,
            "parallel": 8,
            "starts": 0.5,
            "penalty": 1.0,
            **common,
            "hidden": (128, 128),
            "lr": 3e-4,
            "decay": True,
            "relearn": 400,
            "iterations": 1_600,
            **own,
        },
    }


def _simulator(
    env_id: str, integrator: str, substeps: int, env_kwargs: Mapping[str, Any] | None = None
) -> EnvironmentSimulator:
    from rhirl.simulators.mujoco import MujocoSimulator  # MuJoCo is an extra, needed by these tasks only

    return MujocoSimulator(env_id, env_kwargs=env_kwargs, integrator=integrator, substeps=substeps)


HOPPER = Task(
    name="hopper",
    env_id="Hopper-v5",
    T=1000,
    observation_dim=11,
    control_dim=3,
    simulator=lambda: _simulator("Hopper-v5", "implicitfast", 1),
    packages=PACKAGES,
    expert=EXPERT,
    presets=_presets(K=20, M=100, beta=0.8, iterations=100_000),
    paper=paper_returns(
        expert=(3222.48, 3159.32, 2887.72),
        rhirl=(3071.63, 3121.72, 2776.2),
        firl=(3080.34, 2580.19, 1270.24),
        airl=(18.9, 33.52, 18.38),
        gail=(2642.59, 1576.25, 702.33),
    ),
)

WALKER2D = Task(
    name="walker2d",
    env_id="Walker2d-v5",
    T=1000,
    observation_dim=17,
    control_dim=6,
    simulator=lambda: _simulator("Walker2d-v5", "RK4", 1),
    packages=PACKAGES,
    expert=EXPERT,
    presets=_presets(K=30, M=150, beta=0.6, iterations=100_000, acting_ess=0.4),
    paper=paper_returns(
        expert=(4999.47, 4500.43, 3624.48),
        rhirl=(4939.44, 4473.33, 3446.55),
        firl=(4927.92, 3697.36, 2831.91),
        airl=(-2.51, 22.24, 6.5),
        gail=(2489.04, 2884.35, 1840.62),
    ),
)

ANT_PLANNER = {"K": 15, "M": 100, "beta": 0.01, "guided": 0.8, "ess": 0.05, "smooth_window": 1, "survive": True}
"""A step of Ant is six of Hopper's long, and its expert falls amid noise that others do not feel: so plans are
neither smoothed nor sampled far from the proposal."""
ANT_OWN = {
    "planner": ANT_PLANNER,
    "deploy": {**ANT_PLANNER, "M": 60, "beta": 0.0025, "ess": 0.1},
    "amid_noise": {**ANT_PLANNER, "K": 8, "M": 30, "beta": 0.04},
    "exact": True,
    "as_acting": True,
    "rehearsals": 60,
    "beyond": 40,
    "astray": True,
    "span": 100,
    "clone": "large",
    "relearn": None,
    "iterations": 800,
    "quorum": 0.3,
}

ANT = Task(
    name="ant",
    env_id="Ant-v5",
    T=1000,
    observation_dim=105,
    control_dim=8,
    simulator=lambda: _simulator("Ant-v5", "implicitfast", 2),
    packages=PACKAGES,
    expert=EXPERT,
    presets=_presets(K=15, M=200, beta=1.2, iterations=100_000, own=ANT_OWN),
    paper=paper_returns(
        expert=(5759.22, 2557.37, 252.62),
        rhirl=(4987.67, 2373.32, 230.8),
        firl=(5022.42, 2034.87, 197.2),
        airl=(1000.4, 849.05, -7.43),
        gail=(2784.87, 1022.04, -416.69),
    ),
)

WITHOUT_CONTACT = {"include_cfrc_ext_in_observation": False}
ANT_27 = replace(
    ANT,
    name="ant27",
    expert_of="ant",
    observation_dim=27,
    env_kwargs=WITHOUT_CONTACT,
    simulator=lambda: _simulator("Ant-v5", "implicitfast", 2, WITHOUT_CONTACT),
)
"""Ant without the 78 contact forces in its observation."""
