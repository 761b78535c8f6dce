"""The example and the page about bringing one's own simulator do what they say."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rhirl.simulators.gym import GymSimulator
from rhirl.simulators.protocol import EnvironmentSimulator, Simulator

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "own_simulator.py"


def load_example() -> Any:
    spec = importlib.util.spec_from_file_location("own_simulator", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(script: Path) -> str:
    return subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout


def test_the_example_steers_the_puck_home() -> None:
    output = run(EXAMPLE)
    assert "exact: True" in output
    assert float(output.split()[-1]) < 0.2


def test_both_pucks_of_the_example_are_one_system() -> None:
    example = load_example()
    fast, gym = example.FastPuck(), GymSimulator(example.Puck, workers=0, strict=True)
    assert isinstance(fast, Simulator)
    assert isinstance(gym, EnvironmentSimulator)
    V = np.random.default_rng(0).uniform(-1, 1, (16, 12, 2)).astype(np.float32)
    for seed in range(5):
        a, b = fast.rollout(fast.reset(seed), V), gym.rollout(gym.reset(seed), V)
        assert np.abs(b.observations[..., :2]).max() < 2
        assert a.observations.tobytes() == b.observations.tobytes()
    state = gym.step(gym.reset(1), V[0, 0])
    assert fast.observe(fast.step(fast.reset(1), V[0, 0])).tobytes() == gym.observe(state).tobytes()


def test_the_code_on_the_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "simulators-gym.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    script = tmp_path / "page.py"
    script.write_text("\n".join([*blocks, "assert action == 1"]))
    assert run(script) == "(64, 11, 4) True True\n"
