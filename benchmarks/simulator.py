"""Measure MuJoCo simulators: speed against the bare engine and Gymnasium, error of planning models, memory.

    python benchmarks/simulator.py speed Hopper-v5 --samples 100 --horizon 20
    python benchmarks/simulator.py planning Hopper-v5 --horizon 20 --models RK4:1 implicitfast:4
    python benchmarks/simulator.py memory Hopper-v5

Each prints one JSON object, and `--out FILE` keeps it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from rhirl.simulators.benchmark import measure, measure_memory, measure_planning_model, measure_threads
from rhirl.simulators.mujoco import MujocoSimulator


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "planning", "memory"])
    parser.add_argument("env_id", help="a Gymnasium MuJoCo environment")
    parser.add_argument("--samples", type=int, default=100, help="M")
    parser.add_argument("--horizon", type=int, default=20, help="K")
    parser.add_argument("--builds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--no-contact-forces", action="store_true", help="leave contact forces out of observations")
    parser.add_argument("--models", nargs="+", default=["implicitfast:1"], metavar="INTEGRATOR:SUBSTEPS")
    parser.add_argument("--control-steps", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()

    def make(threads: int | None = None, **options: Any) -> MujocoSimulator:
        contact_forces = not arguments.no_contact_forces
        return MujocoSimulator(arguments.env_id, contact_forces=contact_forces, threads=threads, **options)

    simulator = make()
    result: dict[str, Any] = {
        "env_id": arguments.env_id,
        "observation_dim": simulator.observation_shape[0],
        "command": shlex.join(["python", "benchmarks/simulator.py", *sys.argv[1:]]),
        "cores": os.cpu_count(),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "mujoco": mujoco.__version__,
            "gymnasium": gymnasium.__version__,
        },
    }
    if arguments.what == "speed":
        began, others = time.perf_counter(), busy_others()
        work = {name: getattr(arguments, name) for name in ("samples", "horizon", "builds", "repetitions")}
        result |= measure(make, **work) | measure_threads(make, **work)
        result["cores_taken_by_others"] = round((busy_others() - others) / (time.perf_counter() - began), 2)
    elif arguments.what == "planning":
        exact = make(dtype=np.float64)
        for model in arguments.models:
            integrator, substeps = model.split(":")
            planning = make(dtype=np.float64, integrator=integrator, substeps=int(substeps))
            result[model] = measure_planning_model(exact, planning, horizon=arguments.horizon)
    else:
        result |= measure_memory(simulator, control_steps=arguments.control_steps)

    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


def busy_others() -> float:
    """Return the processor seconds that other programs of this machine have used; 0 where Linux does not tell."""
    statistics = Path("/proc/stat")
    if not statistics.exists():
        return 0.0
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, statistics.read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - time.process_time()


if __name__ == "__main__":
    main()
