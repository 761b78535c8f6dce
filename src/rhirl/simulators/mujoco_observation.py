"""The observation rule of a MuJoCo environment, found by asking the environment itself.

Nearly every Gymnasium MuJoCo environment observes entries of MjData, some of them clipped:

    x_i = clip(d.field_i[index_i], low_i, high_i)

Nothing in Gymnasium states this rule as data, so it is read off `_get_obs`: fill every field of a throw-away
simulation with very large and very small numbers to find low and high, then with numbers that occur once to find
field and index. No environment is hard-wired, and one that computes something else (Reacher's cosines) is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco.batch
import numpy as np
from numpy.typing import NDArray

HUGE = 1e100


@dataclass(frozen=True)
class ObservationRule:
    """x_i = clip(field_i[index_i], low_i, high_i), for the n entries of an observation."""

    field: tuple[str, ...]
    """(n,) The MjData field each entry is read from."""
    index: NDArray[np.intp]
    """(n,) Where in that field, flattened."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are read, once each."""
        return tuple(dict.fromkeys(self.field))

    @property
    def size(self) -> int:
        """Length n of an observation."""
        return len(self.field)

    def entries(self, field: str) -> NDArray[np.intp]:
        """Which entries of the observation read this field."""
        return np.flatnonzero([name == field for name in self.field])

    def without(self, field: str) -> ObservationRule:
        """Leave out the entries that read a field."""
        keep = np.flatnonzero([name != field for name in self.field])
        return ObservationRule(
            tuple(self.field[i] for i in keep), self.index[keep], self.low[keep], self.high[keep]
        )

    def assemble(self, values: Mapping[str, NDArray[np.float64]], out: NDArray[Any]) -> None:
        """Write observations (…, n) from the values (…, size) of each field."""
        for field, source, target, low, high in self._parts:
            read = values[field][..., source]
            out[..., target] = read if low is None else np.minimum(np.maximum(read, low), high)

    @cached_property
    def _parts(self) -> list[tuple[Any, ...]]:
        parts = []
        for field in self.fields:
            entries = self.entries(field)
            low, high = self.low[entries], self.high[entries]
            clipped = np.isfinite(low).any() or np.isfinite(high).any()
            bounds = (low, high) if clipped else (None, None)
            parts.append((field, _as_slice(self.index[entries]), _as_slice(entries), *bounds))
        return parts


def read_rule(env: Any) -> ObservationRule | None:
    """Find the rule behind `env._get_obs`, or None if it is more than copying and clipping.

    The environment's simulation is overwritten: hand over one that nobody needs.
    """
    fields = {
        name: array
        for name in sorted(mujoco.batch.DATA_FIELDS)
        if isinstance(array := getattr(env.data, name), np.ndarray) and array.dtype == np.float64 and array.size
    }
    with np.errstate(all="ignore"):
        low, high = _observe_filled(env, fields, -HUGE), _observe_filled(env, fields, HUGE)
    low, high = np.where(low == -HUGE, -np.inf, low), np.where(high == HUGE, np.inf, high)
    if not (low < high).all():
        return None

    floor, ceiling = low.max(), high.min()
    floor = floor if np.isfinite(floor) else min(ceiling, 1.0) - 1.0
    ceiling = ceiling if np.isfinite(ceiling) else floor + 1.0
    rng = np.random.default_rng(0)
    marks = {name: rng.uniform(floor, ceiling, array.shape) for name, array in fields.items()}
    for name, array in fields.items():
        array[:] = marks[name]
    place = {value: (name, i) for name, mark in marks.items() for i, value in enumerate(mark.ravel())}
    found = [place.get(value) for value in env._get_obs()]
    if any(where is None for where in found):
        return None
    names, indices = zip(*(where for where in found if where is not None), strict=True)
    return ObservationRule(names, np.array(indices, np.intp), low, high)


def _observe_filled(env: Any, fields: Mapping[str, NDArray[np.float64]], value: float) -> NDArray[np.float64]:
    for array in fields.values():
        array[:] = value
    return np.asarray(env._get_obs(), np.float64)


def _as_slice(indices: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Turn a run of consecutive indices into a slice, which NumPy copies much faster."""
    first = int(indices[0])
    if np.array_equal(indices, np.arange(first, first + indices.size)):
        return slice(first, first + indices.size)
    return indices
