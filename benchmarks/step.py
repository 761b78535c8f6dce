"""Keep what `rhirl bench step` measures: both presets of a task, and `default` smaller and with few lessons.

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
        ("paper", ()),
        ("default", ()),
        ("default", ("planner.M=50", "parallel=8")),
        ("default", ("lessons=10",)),
    )
    results = [
        measure_step(task, preset=preset, overrides=overrides, repetitions=repetitions, steps=steps)
        for preset, overrides in contests
    ]
    command = f"python benchmarks/step.py {task} --repetitions {repetitions} --steps {steps}"
    text = json.dumps({"command": command, "results": results}, indent=1)
    (RESULTS / f"step-{task}.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    tyro.cli(main)
