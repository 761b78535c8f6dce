"""Demonstrations that install with the package."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from rhirl.demos.demonstrations import DemonstrationError, Demonstrations
from rhirl.demos.files import read_demos

DATA = Path(__file__).parent / "data"
VIEWS = {"ant27": ("ant", 27)}
"""Tasks that see the first entries of another task's observations, and share its files."""


def bundled_path(task: str, noise: float = 0.0) -> Path:
    """Return where the bundled demonstrations of a task at control noise σ lie, whether or not they exist."""
    task, _ = VIEWS.get(task, (task, None))
    return DATA / f"{task}-noise{noise:g}.npz"


def bundled_demos() -> dict[tuple[str, float], Path]:
    """List what is bundled: (task, σ) → file."""
    names = {path: re.fullmatch(r"(\w+)-noise([\d.]+)", path.stem) for path in sorted(DATA.glob("*.npz"))}
    return {(match[1], float(match[2])): path for path, match in names.items() if match}


def load_demos(
    task: str, noise: float = 0.0, *, episodes: int | None = None, everything: bool = False, force: bool = False
) -> Demonstrations:
    """Load the bundled demonstrations of a task: `load_demos("pendulum", noise=0.2)`."""
    path = bundled_path(task, noise)
    if not path.exists():
        have = ", ".join(f"{name} at σ = {level:g}" for name, level in bundled_demos())
        raise DemonstrationError(f"no demonstrations of {task} at σ = {noise:g} are bundled; there are {have}")
    owner, entries = VIEWS.get(task, (task, None))
    demos = read_demos(path, task=owner, everything=everything, force=force)
    if entries is not None:
        demos = replace(demos, observations=demos.observations[..., :entries], meta=replace(demos.meta, task=task))
    return demos if episodes is None else demos.take(episodes)
