"""Demonstrations that are too big to keep: the controls are stored, and the observations are played again.

Where an environment is deterministic, an episode is its seed and its executed controls. A recording holds these and
the SHA-256 of every episode's observations, so that what is played again is known to be what was demonstrated, to
the byte. Twenty episodes of CarRacing are some 400 MB of frames, and 150 kB of recording.

| entry      | what                                                         |
|------------|--------------------------------------------------------------|
| `metadata` | JSON text, as in a demonstration file                        |
| `lengths`  | (N,) int64, steps of each episode                            |
| `controls` | (N, T, m) float32, executed controls v in [-1, 1]            |
| `digests`  | (N, 32) uint8, SHA-256 of each episode's observations        |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rhirl.demos.demonstrations import DemonstrationError, Demonstrations, Metadata, from_episodes
from rhirl.demos.files import check_versions, describe, pack, parse, unpack

SUFFIX = ".recording.npz"

Play = Callable[[int, NDArray[np.float32]], NDArray[Any]]
"""Maps a seed and executed controls (L, m) to observations (L + 1, *n)."""


@dataclass(frozen=True)
class Recordings:
    """N episodes of at most T steps, without their observations."""

    controls: NDArray[np.float32]
    """(N, T, m) executed controls; what follows the end of an episode is zero."""
    lengths: NDArray[np.int64]
    """(N,)"""
    digests: NDArray[np.uint8]
    """(N, 32)"""
    meta: Metadata

    def __post_init__(self) -> None:
        """Refuse what could not be played."""
        N = len(self.meta.seeds)
        T = self.controls.shape[1] if self.controls.ndim == 3 else 0
        shapes = self.controls.shape[:1], self.lengths.shape, self.digests.shape, (len(self.meta.returns),)
        if shapes != ((N,), (N,), (N, 32), (N,)) or N == 0 or T == 0:
            raise DemonstrationError(
                f"recordings: seeds, returns, lengths, controls and digests disagree: {shapes}"
            )
        if not ((self.lengths >= 1) & (self.lengths <= T)).all():
            raise DemonstrationError(f"recordings: lengths must lie in 1…{T}")
        if self.controls.dtype != np.float32 or not (np.abs(self.controls) <= 1).all():
            raise DemonstrationError("recordings: controls must be float32 in [-1, 1]")

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, episodes: int) -> Self:
        """Keep the first episodes only."""
        if not 1 <= episodes <= len(self):
            raise DemonstrationError(f"{episodes} episodes asked for, but there are {len(self)}")
        meta = replace(self.meta, returns=self.meta.returns[:episodes], seeds=self.meta.seeds[:episodes])
        return replace(
            self,
            controls=self.controls[:episodes],
            lengths=self.lengths[:episodes],
            digests=self.digests[:episodes],
            meta=meta,
        )

    def episode(self, i: int) -> tuple[int, NDArray[np.float32]]:
        """Return seed and controls (L, m) of an episode."""
        return self.meta.seeds[i], self.controls[i, : self.lengths[i]]

    def check(self, play: Play) -> None:
        """Play every episode and refuse if a byte differs from what was demonstrated."""
        for i in range(len(self)):
            if digest(play(*self.episode(i))) != self.digests[i].tobytes():
                raise DemonstrationError(
                    f"recordings of {self.meta.task}: episode {i}: played again, it shows something else: "
                    "record it anew with this version of the simulator"
                )

    def demonstrations(self, play: Play) -> Demonstrations:
        """Play all episodes into memory."""
        return from_episodes(
            [play(*self.episode(i)) for i in range(len(self))],
            self.meta,
            horizon=self.controls.shape[1],
            controls=[self.episode(i)[1] for i in range(len(self))],
        )


def record(controls: list[NDArray[np.float32]], meta: Metadata, play: Play, *, horizon: int) -> Recordings:
    """Make recordings of episodes, given their controls (L_i, m), of a task `horizon` steps long."""
    padded = np.zeros((len(controls), horizon, controls[0].shape[1]), np.float32)
    for row, u in zip(padded, controls, strict=True):
        row[: len(u)] = u
    played = [digest(play(seed, u)) for seed, u in zip(meta.seeds, controls, strict=True)]
    return Recordings(
        padded,
        np.array([len(u) for u in controls], np.int64),
        np.stack([np.frombuffer(d, np.uint8) for d in played]),
        meta,
    )


def digest(observations: NDArray[Any]) -> bytes:
    """Return the SHA-256 of observations, their type and shape included."""
    x = np.ascontiguousarray(observations)
    return hashlib.sha256(f"{x.dtype.str}{x.shape}".encode() + x.tobytes()).digest()


def write_recordings(recordings: Recordings, path: str | Path) -> None:
    """Write a recording, whole or not at all."""
    metadata = np.array(json.dumps(describe(recordings.meta), allow_nan=False))
    entries = {name: getattr(recordings, name) for name in ("lengths", "controls", "digests")}
    pack(Path(path), {"metadata": metadata, **entries})


def read_recordings(path: str | Path, *, force: bool = False) -> Recordings:
    """Read and check a recording; `force` accepts one made with other simulator versions."""
    entries = unpack(Path(path), {"metadata", "lengths", "controls", "digests"})
    for missing in {"metadata", "lengths", "controls", "digests"} - entries.keys():
        raise DemonstrationError(f"{path}: {missing}: missing: is this a recording?")
    try:
        meta = parse(json.loads(str(entries.pop("metadata"))), str(path))
        if not force:
            check_versions(meta, str(path))
        return Recordings(meta=meta, **entries)
    except json.JSONDecodeError as error:
        raise DemonstrationError(f"{path}: metadata: not JSON ({error})") from None
    except DemonstrationError as error:
        raise DemonstrationError(str(error).replace("recordings", str(path), 1)) from None
