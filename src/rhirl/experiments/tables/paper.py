"""The paper's raw returns behind its table 2 (appendix): learned without noise, acting under σ = 0.2 and 0.5.

Its table 1 needs nothing here: tasks bring those numbers themselves (`Task.paper`).
"""

from __future__ import annotations

from rhirl.tasks import get_task

RETURNS: dict[str, dict[str, tuple[float, float]]] = {
    "pendulum": {
        "rhirl": (-125.01, -126.4),
        "firl": (-199.44, -220.74),
        "airl": (-247.86, -304.48),
        "gail": (-220.6, -270.81),
    },
    "lunar_lander": {
        "rhirl": (205.66, 175.82),
        "firl": (121.80, 102.06),
        "airl": (31.46, 22.29),
        "gail": (101.80, 78.33),
    },
    "hopper": {
        "rhirl": (2577.28, 2152.08),
        "firl": (2110.52, 1984.29),
        "airl": (18.86, 8.78),
        "gail": (215.29, 132.15),
    },
    "walker2d": {
        "rhirl": (4039.44, 3440.23),
        "firl": (2976.66, 1090.11),
        "airl": (1380.84, 1787.15),
        "gail": (103.15, 124.15),
    },
    "ant": {
        "rhirl": (3192.82, 867.08),
        "firl": (2042.41, 472.77),
        "airl": (845.69, 0.69),
        "gail": (-6.41, -79.89),
    },
    "car_racing": {
        "rhirl": (261.78, 110.12),
        "firl": (16.12, -24.78),
        "airl": (-27.09, -23.96),
        "gail": (-6.41, -49.89),
    },
}


def transferred_ratio(task: str, method: str, noise: float) -> float | None:
    """Return the paper's ratio to the noise-free expert, from its raw returns; None where it has no number."""
    benchmark = get_task(task)
    if noise == 0:
        return benchmark.paper_ratio(method, 0.0)
    returns = RETURNS.get(task, {}).get(method)
    if returns is None or noise not in (0.2, 0.5):
        return None
    return benchmark.ratio(returns[0 if noise == 0.2 else 1], benchmark.paper["expert"]["0"])
