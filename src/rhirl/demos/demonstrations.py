"""Demonstrations: what an expert's states were, and where they came from.

Shapes: `N` episodes, at most `T` steps each, observations of shape `n`. An episode of L ≤ T steps has L + 1 states;
what follows it in the array repeats its last state and is never looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class DemonstrationError(ValueError):
    """Demonstrations that cannot be used, naming the file, the episode and the field."""


@dataclass(frozen=True)
class Metadata:
    """Where demonstrations come from. Everything needed to judge them or to make them again."""

    task: str
    """The task's name, `hopper`."""
    env_id: str
    """The Gymnasium environment, `Hopper-v5`."""
    noise: float
    """Standard deviation σ of the control noise while demonstrating, in [-1, 1] units; the paper's Σ column."""
    returns: tuple[float, ...]
    """Return of each episode under the environment's own reward, NaN where unknown. Never seen by a learner."""
    seeds: tuple[int, ...]
    """Seed each episode's `reset` was given, -1 where unknown."""
    source: str
    """Who demonstrated: an expert's name, or `imported from …`."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of the packages that made the states: `{"gymnasium": …, "mujoco": …}`."""


@dataclass(frozen=True)
class Demonstrations:
    """State-only demonstrations. Controls and simulator states may lie beside them; no state-only learner looks."""

    observations: NDArray[Any]
    """(N, T + 1, *n) float32, or uint8 for images."""
    lengths: NDArray[np.int64]
    """(N,) number of steps L of each episode."""
    meta: Metadata
    controls: NDArray[np.float32] | None = None
    """(N, T, m) executed controls v in [-1, 1], for methods that need them."""
    system_states: NDArray[np.float64] | None = None
    """(N, T + 1, s) full simulator states, flat."""

    def __post_init__(self) -> None:
        validate(self)

    @property
    def horizon(self) -> int:
        """T, the length of the task."""
        return self.observations.shape[1] - 1

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape n of one observation."""
        return self.observations.shape[2:]

    def __len__(self) -> int:
        return len(self.observations)

    def states(self) -> NDArray[Any]:
        """All demonstrated states in a row: (Σ(L + 1), *n)."""
        return np.concatenate([x[: length + 1] for x, length in zip(self.observations, self.lengths, strict=True)])

    def quorate(self, share: float) -> Self:
        """Cut all episodes off at the last step that at least this share of them reach."""
        longest = np.sort(self.lengths)[::-1]
        T = int(longest[max(0, math.ceil(share * len(self) - 1e-9) - 1)])
        controls, states = self.controls, self.system_states
        return replace(
            self,
            observations=self.observations[:, : T + 1],
            lengths=np.minimum(self.lengths, T),
            controls=None if controls is None else controls[:, :T],
            system_states=None if states is None else states[:, : T + 1],
        )

    def take(self, episodes: int) -> Self:
        """Keep the first episodes only."""
        if not 1 <= episodes <= len(self):
            raise DemonstrationError(f"{episodes} episodes asked for, but there are {len(self)}")
        meta = replace(self.meta, returns=self.meta.returns[:episodes], seeds=self.meta.seeds[:episodes])
        return replace(
            self,
            observations=self.observations[:episodes],
            lengths=self.lengths[:episodes],
            meta=meta,
            controls=None if self.controls is None else self.controls[:episodes],
            system_states=None if self.system_states is None else self.system_states[:episodes],
        )

    def check_fits(self, observation_shape: tuple[int, ...]) -> None:
        """Refuse to be used with a simulator whose observations look different."""
        if self.observation_shape != observation_shape:
            raise DemonstrationError(
                f"demonstrations of {self.meta.task} have observations of shape {self.observation_shape}, "
                f"the simulator's are {observation_shape}"
            )


def validate(demos: Demonstrations, name: str = "demonstrations") -> None:
    """Raise a DemonstrationError that names episode and field if anything is wrong."""
    x, lengths = demos.observations, demos.lengths
    if x.ndim < 3 or x.dtype not in (np.float32, np.uint8):
        raise DemonstrationError(
            f"{name}: observations must be (episodes, steps + 1, …) of float32 or uint8, "
            f"not {x.dtype} of shape {x.shape}"
        )
    N, T = x.shape[0], x.shape[1] - 1
    if N == 0 or T < 1:
        raise DemonstrationError(f"{name}: observations hold {N} episodes of {T} steps: too short to learn from")
    if lengths.shape != (N,) or not np.issubdtype(lengths.dtype, np.integer):
        raise DemonstrationError(
            f"{name}: lengths must be {N} integers, not {lengths.dtype} of shape {lengths.shape}"
        )
    for i, length in enumerate(lengths):
        if not 1 <= length <= T:
            raise DemonstrationError(f"{name}: episode {i}: length {length} does not lie in 1…{T}")
    for i in range(N):
        used = x[i, : lengths[i] + 1]
        if used.dtype == np.float32 and not np.isfinite(used).all():
            step = int(np.argwhere(~np.isfinite(used))[0][0])
            raise DemonstrationError(f"{name}: episode {i}: observations: not finite at step {step}")
    for field_name in ("returns", "seeds"):
        count = len(getattr(demos.meta, field_name))
        if count != N:
            raise DemonstrationError(f"{name}: metadata: {field_name}: {count} entries for {N} episodes")
    for field_name, array, steps in (
        ("controls", demos.controls, T),
        ("system_states", demos.system_states, T + 1),
    ):
        if array is None:
            continue
        if array.ndim != 3 or array.shape[:2] != (N, steps):
            raise DemonstrationError(
                f"{name}: {field_name}: shape {array.shape} does not start with ({N}, {steps})"
            )
        if array.dtype.kind != "f":
            raise DemonstrationError(f"{name}: {field_name}: floating-point numbers are wanted, not {array.dtype}")
        for i in range(N):
            if not np.isfinite(array[i, : lengths[i] + steps - T]).all():
                raise DemonstrationError(f"{name}: episode {i}: {field_name}: not finite")


def from_episodes(
    observations: list[NDArray[Any]],
    meta: Metadata,
    *,
    horizon: int,
    controls: list[NDArray[Any]] | None = None,
) -> Demonstrations:
    """Lay ragged episodes, (L_i + 1, *n) each, out as one padded array."""
    if not observations:
        raise DemonstrationError("no episodes")
    shapes = {np.shape(x)[1:] for x in observations}
    if len(shapes) > 1:
        raise DemonstrationError(f"observations are ragged: episodes have shapes {sorted(shapes)}")
    for i, x in enumerate(observations):
        if not 2 <= len(x) <= horizon + 1:
            raise DemonstrationError(f"episode {i}: {len(x)} states, but 2…{horizon + 1} are wanted")
        if controls is not None and len(controls[i]) != len(x) - 1:
            raise DemonstrationError(f"episode {i}: controls: {len(controls[i])} for {len(x) - 1} steps")
    return Demonstrations(
        observations=np.stack([_pad(x, horizon + 1) for x in observations]),
        lengths=np.array([len(x) - 1 for x in observations], np.int64),
        meta=meta,
        controls=None
        if controls is None
        else np.stack([_pad(np.asarray(u, np.float32), horizon) for u in controls]),
    )


def _pad(x: NDArray[Any], length: int) -> NDArray[Any]:
    return np.concatenate([x, np.repeat(x[-1:], length - len(x), axis=0)])
