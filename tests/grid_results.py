"""Results as runs leave them, made up, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rhirl.experiments.run import RunDirectory


def write_result(
    root: Path,
    task: str,
    label: str,
    seed: int,
    returns: dict[float, float],
    *,
    learned_at: float = 0.0,
    expert: dict[float, float] | None = None,
) -> RunDirectory:
    """Write a finished run with one evaluation per noise level; experts return 100 unless said otherwise."""
    run = RunDirectory(root / task / label / f"noise{learned_at:g}" / f"seed{seed}")
    run.write_json("config.json", {"task": task})
    for noise, mean in returns.items():
        own = (expert or {}).get(noise, 100.0)
        evaluation = {
            "task": task,
            "noise": noise,
            "learned_at_noise": learned_at,
            "run_seed": seed,
            "seed": seed,
            "reoptimised": label == "firl" and noise != learned_at,
            "return_mean": mean,
            "expert_return": own,
            "ratio": max(0.0, mean / own),
            "score": mean / own,
            "episodes": 50,
        }
        anew = "-reoptimised" if evaluation["reoptimised"] else ""
        run.write_json(f"eval/noise{noise:g}-seed{seed}{anew}.json", evaluation)
    return run


def write_curve(
    run: RunDirectory, scores: Iterable[float], *, executed: int = 100, simulated: int | None = 1000
) -> None:
    """Write a log with an evaluation every `executed` steps, made at 50 steps a second."""
    for i, score in enumerate(scores, start=1):
        line = {"iteration": i, "steps/executed": i * executed, "time/steps_per_s": 50.0 if executed else 0.0}
        if simulated is not None:
            line["steps/simulated"] = i * simulated
        run.append_metrics({**line, "eval/score": score, "eval/return": 100 * score})


def strict_json(text: str) -> Any:
    """Parse one JSON document; NaN and infinity are none."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)
