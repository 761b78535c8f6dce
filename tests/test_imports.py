"""Which room may import which: data flows in one direction, and the source shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "rhirl"
BELOW = {"planning", "costs", "simulators", "demos", "rl", "learning", "baselines", "tasks", "machine", "proposals"}
EVERYBODY = {"atomic"}
MAY_IMPORT: dict[str, set[str]] = {
    "atomic": set(),
    "planning": set(),
    "costs": set(),
    "simulators": set(),
    "demos": set(),
    "rl": set(),
    "learning": {"planning", "costs", "simulators", "demos"},
    "baselines": {"rl", "costs", "demos"},
    "tasks": {"simulators", "demos"},
    "machine": {"simulators"},
    "proposals": {"learning", "baselines", "rl", "costs", "demos", "simulators", "tasks", "machine"},
    "experiments": BELOW,
    "report": BELOW | {"experiments"},
    "cli": BELOW | {"experiments", "report"},
    "__init__": BELOW,
}
EXPERIMENTS = SOURCE / "experiments"
INSIDE_EXPERIMENTS: dict[str, set[str]] = {
    "": {"methods"},
    "methods": set(),
    "grid": {"methods"},
    "tables": {"grid"},
}
"""Of the rooms inside it; what stands in none of them, all may import."""


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """What of ours a file imports, by its full name, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith("rhirl."))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_what_it_may(path: Path) -> None:
    own = room(path)
    assert own in MAY_IMPORT, f"{own} is a new room: say here what it may import"
    assert {name.split(".")[1] for name in imported(path)} <= MAY_IMPORT[own] | {own} | EVERYBODY


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_inside_experiments_imports_flow_one_way_too(path: Path) -> None:
    parts = path.relative_to(EXPERIMENTS).parts
    own = parts[0] if len(parts) > 1 else ""
    assert own in INSIDE_EXPERIMENTS, f"{own} is a new room: say here what it may import"
    names = [name.split(".") for name in imported(path) if name.startswith("rhirl.experiments.")]
    assert {name[2] for name in names} & INSIDE_EXPERIMENTS.keys() <= INSIDE_EXPERIMENTS[own] | {own}


def test_the_table_has_no_circle() -> None:
    left = dict(MAY_IMPORT)
    while left:
        free = {name for name, needs in left.items() if not needs & left.keys()}
        assert free, f"circular: {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}


def test_every_room_of_the_table_that_exists_is_checked() -> None:
    rooms = {room(path) for path in SOURCE.rglob("*.py")}
    assert {
        "planning",
        "costs",
        "simulators",
        "demos",
        "learning",
        "tasks",
        "machine",
        "proposals",
        "experiments",
        "report",
        "cli",
    } <= rooms
