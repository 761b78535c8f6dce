"""Use my own demonstrations: states from plain `.npz` arrays or from tables of comma-separated values.

| what                      | how episodes are laid out                                                        |
|---------------------------|----------------------------------------------------------------------------------|
| `.npz` with `observations`| (N, T + 1, *n), with `lengths` (N,) and `returns` (N,) beside it if there are any |
| any other `.npz`          | one array (L + 1, *n) per episode, in the order of their names                   |
| `.csv`                    | a line per state, columns named in the first line; `episode` tells them apart    |
| a folder                  | one `.csv` per episode, in the order of their names                              |

What nobody wrote down stays unknown: returns are NaN and seeds -1. An episode shorter than T counts as one that the
environment ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.demos.csv_files import naturally, read_csv, read_folder
from rhirl.demos.demonstrations import DemonstrationError, Demonstrations, Metadata, from_episodes
from rhirl.demos.files import unpack


def import_table(
    path: str | Path,
    *,
    task: str,
    env_id: str,
    horizon: int | None = None,
    columns: Sequence[str] | None = None,
    cut: bool = False,
    noise: float = 0.0,
    source: str | None = None,
    versions: dict[str, str] | None = None,
) -> Demonstrations:
    """Import demonstrations from an `.npz`, a `.csv` or a folder of `.csv` files.

    Args:
        path: The file or folder.
        task: Name of the task that is demonstrated.
        env_id: Its Gymnasium environment.
        horizon: T, the length of the task; that of the longest episode by default.
        columns: Which columns of a table are the state, in this order; all of them by default.
        cut: Keep the first T steps of episodes that are longer, instead of refusing them.
        noise: What is known of the control noise while demonstrating.
        source: Who demonstrated.
        versions: Versions of the packages that made the states, where known.
    """
    path = Path(path)
    if path.is_dir():
        episodes, returns = read_folder(path, columns), None
    elif path.suffix.lower() == ".csv":
        episodes, returns = read_csv(path, columns), None
    elif columns is not None:
        raise DemonstrationError(f"{path}: columns can only be chosen from .csv files")
    else:
        episodes, returns = _read_npz(path)
    T = task_length([len(x) - 1 for x in episodes], horizon, cut=cut, name=str(path))
    meta = Metadata(
        task=task,
        env_id=env_id,
        noise=noise,
        # Of an episode that is cut, nobody knows what the first part was worth.
        returns=tuple(
            math.nan if returns is None or len(x) > T + 1 else float(returns[i]) for i, x in enumerate(episodes)
        ),
        seeds=(-1,) * len(episodes),
        source=source if source is not None else f"imported from {path.name}",
        versions=versions or {},
    )
    states = [as_states(x[: T + 1], f"{path}: episode {i}") for i, x in enumerate(episodes)]
    with naming(str(path)):
        return from_episodes(states, meta, horizon=T)


def task_length(lengths: Sequence[int], horizon: int | None, *, cut: bool, name: str) -> int:
    """Return T: the horizon, or the longest episode's length where none is given. Longer episodes are refused."""
    if not lengths:
        raise DemonstrationError(f"{name}: no episodes")
    if min(lengths) < 1:
        raise DemonstrationError(f"{name}: episode {np.argmin(lengths)}: one state; it takes at least two")
    if horizon is None:
        return max(lengths)
    for i, length in enumerate(lengths):
        if length > horizon and not cut:
            raise DemonstrationError(
                f"{name}: episode {i}: {length} steps, but the task has {horizon}; "
                "keep the first of them with cut=True (--cut)"
            )
    return horizon


def as_states(x: NDArray[Any], name: str) -> NDArray[Any]:
    """States (L + 1, *n) as learners see them: images stay bytes, all other numbers become float32."""
    if x.dtype == np.uint8 and x.ndim > 2:
        return x
    if x.dtype.kind not in "fiub":
        raise DemonstrationError(f"{name}: numbers are wanted, not {x.dtype}")
    with np.errstate(over="ignore"):
        states = x.astype(np.float32)
    lost = np.isfinite(x) & ~np.isfinite(states)
    if lost.any():
        step = int(np.argwhere(lost)[0][0])
        raise DemonstrationError(f"{name}: step {step}: {x[lost][0]:g} is too large for float32")
    return states


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the name of what is imported in front of errors."""
    try:
        yield
    except DemonstrationError as error:
        raise DemonstrationError(f"{name}: {str(error).removeprefix('demonstrations: ')}") from None


def _read_npz(path: Path) -> tuple[list[NDArray[Any]], NDArray[Any] | None]:
    """Return the episodes, and their returns where the file has them."""
    arrays = unpack(path)
    if not arrays:
        raise DemonstrationError(f"{path}: holds no arrays")
    if "metadata" in arrays:
        raise DemonstrationError(f"{path}: is a demonstration file already: use it as it is")
    if "observations" in arrays:
        return _split(path, arrays["observations"], arrays.get("lengths"), arrays.get("returns"))
    for name, x in arrays.items():
        if x.ndim < 2 or len(x) < 2:
            raise DemonstrationError(
                f"{path}: {name}: shape {x.shape}, but an episode is (steps + 1, …); "
                "or put all episodes into one array `observations` (episodes, steps + 1, …)"
            )
    return [arrays[name] for name in sorted(arrays, key=naturally)], None


def _split(
    path: Path, x: NDArray[Any], lengths: NDArray[Any] | None, returns: NDArray[Any] | None
) -> tuple[list[NDArray[Any]], NDArray[Any] | None]:
    """Split (N, T + 1, *n) into episodes of the given lengths."""
    if x.ndim < 3 or len(x) == 0:
        raise DemonstrationError(
            f"{path}: observations: shape {x.shape}, but (episodes, steps + 1, …) is wanted; "
            "a single episode is observations[None]"
        )
    N, T = len(x), x.shape[1] - 1
    for name, values, kinds in (("lengths", lengths, "iu"), ("returns", returns, "iuf")):
        if values is not None and (values.shape != (N,) or values.dtype.kind not in kinds):
            raise DemonstrationError(f"{path}: {name}: {values.dtype} of shape {values.shape} for {N} episodes")
    steps = [T] * N if lengths is None else [int(length) for length in lengths]
    for i, length in enumerate(steps):
        if not 1 <= length <= T:
            raise DemonstrationError(f"{path}: episode {i}: lengths: {length} does not lie in 1…{T}")
    return [x[i, : length + 1] for i, length in enumerate(steps)], returns
