"""Look at demonstrations: the numbers that say whether they are what one thinks, and a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rhirl.demos.demonstrations import Demonstrations
from rhirl.demos.files import read_demos, sha256

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 12  # coordinates in a picture


def summary(demos: Demonstrations | str | Path) -> dict[str, Any]:
    """Describe demonstrations, or a file of them, in plain JSON values.

    What is unknown is `None`: the returns of imported demonstrations, the hash of those that are not a file. Files
    made with other versions of a simulator are described like any other; they are refused where they are used.
    """
    path = None if isinstance(demos, Demonstrations) else demos
    if not isinstance(demos, Demonstrations):
        demos = read_demos(demos, everything=True, force=True)
    meta, returns = demos.meta, np.array(demos.meta.returns)
    low, high = _ranges(demos)
    return {
        "task": meta.task,
        "env_id": meta.env_id,
        "source": meta.source,
        "noise": meta.noise,
        "episodes": len(demos),
        "length": demos.horizon,
        "lengths": [int(length) for length in demos.lengths],
        "ended_early": int(np.sum(demos.lengths < demos.horizon)),
        "states": int(np.sum(demos.lengths + 1)),
        "observation_dim": math.prod(demos.observation_shape),
        "observation_shape": list(demos.observation_shape),
        "observation_low": low.tolist(),
        "observation_high": high.tolist(),
        "control_dim": None if demos.controls is None else demos.controls.shape[2],
        "return_mean": _known(returns.mean()),
        "return_std": _known(returns.std()),
        "returns": [_known(r) for r in returns],
        "seeds": list(meta.seeds),
        "versions": dict(meta.versions),
        "sha256": None if path is None else sha256(path),
    }


def plot(demos: Demonstrations, path: str | Path) -> None:
    """Draw returns, lengths and coordinates over time into a picture file (`.png`, `.svg`, `.pdf`)."""
    draw(demos).savefig(path)


def draw(demos: Demonstrations) -> Figure:
    """Draw demonstrations: the mean of each coordinate over time, in a band from the least to the greatest."""
    # Matplotlib takes longer to import than anything else in this package does to run.
    from matplotlib.figure import Figure

    coordinates = _coordinates(demos)
    n = coordinates.shape[2]
    shown = min(n, SHOWN)
    rows = math.ceil(shown / 3)
    figure = Figure(figsize=(10, 2.2 + 1.6 * rows), layout="constrained")
    grid = figure.add_gridspec(rows + 1, 6)
    episodes = np.arange(len(demos))
    for column, title, values in ((0, "return", demos.meta.returns), (3, "length", demos.lengths)):
        axes = figure.add_subplot(grid[0, column : column + 3])
        axes.bar(episodes, np.asarray(values, float))
        axes.set(title=title, xlabel="episode")
    t = np.arange(coordinates.shape[1])
    for j in range(shown):
        axes = figure.add_subplot(grid[1 + j // 3, 2 * (j % 3) : 2 * (j % 3) + 2])
        x = coordinates[:, :, j]
        axes.fill_between(t, np.nanmin(x, axis=0), np.nanmax(x, axis=0), alpha=0.3, linewidth=0)
        axes.plot(t, np.nanmean(x, axis=0), linewidth=1)
        axes.set_title(f"x[{j}]", fontsize="small")
        axes.tick_params(labelsize="x-small")
    more = "" if shown == n else f", first {shown} of {n} coordinates"
    figure.suptitle(f"{demos.meta.task}, control noise {demos.meta.noise:g}: {len(demos)} demonstrations{more}")
    return figure


def _ranges(demos: Demonstrations) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and greatest value of each coordinate, or of each colour of an image."""
    x = demos.states()
    axes = tuple(range(x.ndim - 1))
    return x.min(axis=axes), x.max(axis=axes)


def _coordinates(demos: Demonstrations) -> NDArray[np.float64]:
    """Each coordinate over time, or the brightness of each colour: (N, longest + 1, n), NaN after the end."""
    longest = int(demos.lengths.max())
    x = demos.observations[:, : longest + 1]
    if x.ndim > 3:
        x = x.mean(axis=tuple(range(2, x.ndim - 1)))
    alive = np.arange(longest + 1) <= demos.lengths[:, None]
    return np.where(alive[:, :, None], x, np.nan)


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
