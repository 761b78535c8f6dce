"""Keep what `rhirl bench step` measures: both presets of a task; `default` smaller, with few lessons, amid noise.

python benchmarks/step.py pendulum
"""

from __future__ import annotations

import json
from pathlib import Path

import tyro

from rhirl.experiments.bench import measure_step

RESULTS = Path(__file__).parent.parent / "results/bench"


def main(task: tyro.conf.Positional[str] = "pendulum", /, repetitions: int = 20, steps: int = 50) -> None:
    """Measure one control step (plan and learn) against its rollouts alone."""
    contests = (
        ("paper", (), 0.0),
        ("default", (), 0.0),
        ("default", ("planner.M=50", "parallel=8"), 0.0),
        ("default", ("lessons=10",), 0.0),
        ("default", (), 0.5),
    )
    results = [
        measure_step(task, preset=preset, overrides=overrides, noise=noise, repetitions=repetitions, steps=steps)
        for preset, overrides, noise in contests
    ]
    command = f"python benchmarks/step.py {task} --repetitions {repetitions} --steps {steps}"
    text = json.dumps({"command": command, "results": results}, indent=1)
    (RESULTS / f"step-{task}.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    tyro.cli(main)
