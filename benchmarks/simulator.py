"""Throughput of MuJoCo rollouts against bare `mujoco.batch` and Gymnasium's loop.

python benchmarks/simulator.py Hopper-v5 --samples 100 --horizon 20 --out results/bench/mujoco-hopper.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from rhirl.simulators.benchmark import measure, measure_memory, measure_planning_model, measure_threads
from rhirl.simulators.mujoco import MujocoSimulator


def main() -> None:
    """Measure one environment, print the numbers as JSON, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env_id", help="a Gymnasium MuJoCo environment")
    parser.add_argument("--samples", type=int, default=100, help="M")
    parser.add_argument("--horizon", type=int, default=20, help="K")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--no-contact-forces", action="store_true", help="leave contact forces out of observations")
    parser.add_argument(
        "--memory", type=int, default=0, metavar="STEPS", help="also watch memory over control steps"
    )
    parser.add_argument(
        "--planning", nargs="*", default=[], metavar="INTEGRATOR:SUBSTEPS", help="models to compare"
    )
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()

    def make(threads: int | None, **options: Any) -> MujocoSimulator:
        contact_forces = not arguments.no_contact_forces
        return MujocoSimulator(arguments.env_id, contact_forces=contact_forces, threads=threads, **options)

    load_before = os.getloadavg()[0]
    simulator = make(arguments.threads)
    work = {"samples": arguments.samples, "horizon": arguments.horizon, "repetitions": arguments.repetitions}
    result: dict[str, Any] = {
        "env_id": arguments.env_id,
        "command": shlex.join(["python", "benchmarks/simulator.py", *sys.argv[1:]]),
        "observation_dim": simulator.observation_shape[0],
        "rollout_threads": simulator.threads,
        **measure(simulator, **work),
        **measure_threads(make, **work),
    }
    if arguments.memory:
        result |= measure_memory(simulator, control_steps=arguments.memory)
    for model in arguments.planning:
        integrator, substeps = model.split(":")
        exact = make(arguments.threads, dtype=np.float64)
        planning = make(arguments.threads, dtype=np.float64, integrator=integrator, substeps=int(substeps))
        errors = measure_planning_model(exact, planning, horizon=arguments.horizon)
        result.setdefault("planning_models", {})[model] = errors
    result |= {
        "cores": os.cpu_count(),
        "load_average": [load_before, os.getloadavg()[0]],
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "mujoco": mujoco.__version__,
            "gymnasium": gymnasium.__version__,
        },
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
