"""States from files of comma-separated values: a line per state, columns named in the first line.

Episodes are told apart by an `episode` column, or lie in files of their own. A `step` column is only checked, never
learned from; every other column is a coordinate of x. Errors name the file, the line and the column.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.demos.demonstrations import DemonstrationError

EPISODE, STEP = "episode", "step"


class Row(NamedTuple):
    """A line of a table."""

    line: int
    """Its number in the file, from 1."""
    cells: list[str]


class Table(NamedTuple):
    """A table as text."""

    path: Path
    names: list[str]
    rows: list[Row]


def read_csv(path: Path, columns: Sequence[str] | None = None) -> list[NDArray[np.float64]]:
    """Read the episodes, (L + 1, n) each, of one file."""
    table = _read(path)
    if EPISODE not in table.names:
        return [_states(table, columns)]
    column = table.names.index(EPISODE)
    groups: dict[str, list[Row]] = {}
    last = None
    for row in table.rows:
        episode = row.cells[column].strip()
        if episode in groups and episode != last:
            raise DemonstrationError(
                f"{path}: line {row.line}: column {EPISODE}: {episode} goes on after {last} began; sort the lines"
            )
        groups.setdefault(episode, []).append(row)
        last = episode
    return [_states(table._replace(rows=rows), columns) for rows in groups.values()]


def read_folder(folder: Path, columns: Sequence[str] | None = None) -> list[NDArray[np.float64]]:
    """Read the episodes of a folder: one `.csv` file each, in the order of their names."""
    files = [path for path in folder.iterdir() if path.suffix.lower() == ".csv"]
    if not files:
        raise DemonstrationError(f"{folder}: holds no .csv files")
    tables = [_read(path) for path in sorted(files, key=lambda path: naturally(path.name))]
    for table in tables:
        if EPISODE in table.names:
            raise DemonstrationError(f"{table.path}: column {EPISODE}: in a folder, each file is one episode")
        if table.names != tables[0].names:
            raise DemonstrationError(
                f"{table.path}: line 1: columns {', '.join(table.names)}, "
                f"but those of {tables[0].path.name} are {', '.join(tables[0].names)}"
            )
    return [_states(table, columns) for table in tables]


def naturally(name: str) -> list[tuple[int, str]]:
    """Sort key that puts episode_2 before episode_10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def _read(path: Path) -> Table:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            lines = [Row(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except FileNotFoundError:
        raise DemonstrationError(f"{path}: no such file") from None
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise DemonstrationError(f"{path}: not a readable table ({error})") from None
    if len(lines) < 2:
        raise DemonstrationError(f"{path}: a line of column names and lines of states are wanted")
    header, *rows = lines
    names = [name.strip() for name in header.cells]
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        raise DemonstrationError(f"{path}: line {header.line}: cells must be separated by commas")
    if not any(math.isnan(_number(name)) for name in names):
        raise DemonstrationError(f"{path}: line {header.line}: numbers, but the first line must name the columns")
    for i, name in enumerate(names):
        if not name or name in names[:i]:
            raise DemonstrationError(
                f"{path}: line {header.line}: column {i + 1}: its name {name!r} is empty or taken"
            )
    for row in rows:
        if len(row.cells) != len(names):
            raise DemonstrationError(f"{path}: line {row.line}: {len(row.cells)} cells for {len(names)} columns")
    return Table(path, names, rows)


def _states(table: Table, columns: Sequence[str] | None) -> NDArray[np.float64]:
    """Read the lines of one episode: (L + 1, n)."""
    path, names, rows = table
    chosen = list(columns) if columns is not None else [name for name in names if name not in (EPISODE, STEP)]
    for name in chosen:
        if name not in names:
            raise DemonstrationError(f"{path}: no column {name}; there are {', '.join(names)}")
    if not chosen:
        raise DemonstrationError(f"{path}: no columns of states; there are {', '.join(names)}")
    if len(rows) < 2:
        raise DemonstrationError(f"{path}: line {rows[0].line}: an episode of one state; it takes at least two")
    if STEP in names:
        steps = _column(table, STEP)
        wrong = np.flatnonzero(steps != steps[0] + np.arange(len(steps)))
        if len(wrong):
            i = int(wrong[0])
            raise DemonstrationError(
                f"{path}: line {rows[i].line}: column {STEP}: {steps[i]:g}, but {steps[0] + i:g} comes next"
            )
    return np.stack([_column(table, name) for name in chosen], axis=1)


def _column(table: Table, name: str) -> NDArray[np.float64]:
    i = table.names.index(name)
    values = np.array([_number(row.cells[i]) for row in table.rows])
    for k in np.flatnonzero(~np.isfinite(values)):
        line, cells = table.rows[k]
        raise DemonstrationError(f"{table.path}: line {line}: column {name}: {cells[i]!r} is not a finite number")
    return values


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
