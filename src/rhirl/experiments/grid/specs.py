"""Which runs a grid has: a small TOML file, or the name of one that comes with the package.

    title = "Does a longer horizon pay?"
    [[runs]]                         # one block or several, done in this order
    tasks = ["hopper"]
    methods = ["rhirl"]
    noises = [0, 0.2]                # control noise σ that is demonstrated and acted with; 0 by default
    seeds = 3                        # 0, 1, 2; or a list
    variants.K5 = ["planner.K=5"]    # settings as after `rhirl train --set`, under a name of yours
    variants.K20 = ["planner.K=20"]

A block may also have `preset`, `demonstrations` (how many to learn from), `evaluations` (how often a run is scored
while it learns), `evaluate_at` (noise levels) and `episodes` of evaluation; a file, `episodes` for all blocks, and
`out`, where its runs go if not to results/runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from rhirl.experiments.grid.cells import Cell

BUILT_IN = Path(str(files("rhirl.experiments.grid"))) / "built_in"
RESULTS = Path("results/runs")
FILE_KEYS = {"title": str, "episodes": int, "out": str, "runs": list}
BLOCK_KEYS = {
    "tasks": list,
    "methods": list,
    "noises": list,
    "seeds": (int, list),
    "preset": str,
    "variants": dict,
    "demonstrations": int,
    "evaluations": int,
    "evaluate_at": list,
    "episodes": int,
}


class SpecError(ValueError):
    """A grid that cannot be read, with what to do about it."""


@dataclass(frozen=True)
class Spec:
    """A grid of runs."""

    name: str
    title: str
    out: Path
    cells: tuple[Cell, ...]


def built_in_names() -> list[str]:
    """List the grids that come with the package."""
    return sorted(path.stem for path in BUILT_IN.glob("*.toml"))


def is_spec(what: str) -> bool:
    """Whether this names a grid: a built-in one, or a TOML file."""
    return what in built_in_names() or what.endswith(".toml")


def read_spec(what: str, *, seeds: int | None = None, out: Path | None = None) -> Spec:
    """Read a grid by name or from a file; `seeds` and `out` replace what it says."""
    path = BUILT_IN / f"{what}.toml" if what in built_in_names() else Path(what)
    if not is_spec(what):
        raise SpecError(f"no grid {what!r}; there are {', '.join(built_in_names())}, or give a .toml file")
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is not TOML: {error}") from None
    _check(values, FILE_KEYS, str(path))
    if not values.get("runs"):
        raise SpecError(f"{path}: a grid needs at least one [[runs]] block")
    cells: dict[Path, Cell] = {}
    for block in values["runs"]:
        _check(block, BLOCK_KEYS, f"{path}, [[runs]]")
        for cell in _cells({"episodes": values.get("episodes", 50), **block}, seeds, str(path)):
            _add(cells, cell)
    target = out or Path(values.get("out", RESULTS))
    # Best first across blocks as within one: every task's cells of one variant, method and noise before the next.
    variants, methods = (
        list(dict.fromkeys(names)) for names in zip(*((c.variant, c.method) for c in cells.values()), strict=True)
    )
    ordered = sorted(cells.values(), key=lambda c: (variants.index(c.variant), methods.index(c.method), c.noise))
    return Spec(path.stem, values.get("title", path.stem), target, tuple(ordered))


def _cells(block: Mapping[str, Any], seeds: int | None, where: str) -> Iterator[Cell]:
    """Expand a block, best first: by variant, then method, noise and task, the seeds innermost."""
    for key in ("tasks", "methods"):
        if not block.get(key):
            raise SpecError(f"{where}, [[runs]]: say which {key}")
    chosen = block.get("seeds", 3) if seeds is None else seeds
    variants = block.get("variants") or {"": []}
    noises = [float(noise) for noise in block.get("noises", [0])]
    axes = (variants.items(), block["methods"], noises, block["tasks"])
    for (variant, settings), method, noise, task in product(*axes):
        for seed in range(chosen) if isinstance(chosen, int) else chosen:
            yield Cell(
                task,
                method,
                noise,
                seed,
                block.get("preset", "default"),
                variant,
                tuple(settings),
                block.get("demonstrations"),
                block["episodes"],
                tuple(float(level) for level in block.get("evaluate_at", ())),
                block.get("evaluations", Cell.evaluations),
            )


def _add(cells: dict[Path, Cell], cell: Cell) -> None:
    """Add a cell; one that two blocks ask for is done once, and evaluated as both ask."""
    known = cells.setdefault(cell.folder, cell)
    if known != cell:
        levels = dict.fromkeys([*(known.levels or (known.noise,)), *(cell.levels or (cell.noise,))])
        both = replace(known, levels=tuple(levels))
        if replace(cell, levels=both.levels) != both:
            raise SpecError(f"two [[runs]] blocks ask for {cell.folder} with different settings: name a variant")
        cells[cell.folder] = both


def _check(values: Mapping[str, Any], keys: Mapping[str, Any], where: str) -> None:
    for name, value in values.items():
        if name not in keys:
            raise SpecError(f"{where}: no key {name!r}; there are {', '.join(keys)}")
        if not isinstance(value, keys[name]):
            raise SpecError(f"{where}: {name} cannot be {value!r}")
