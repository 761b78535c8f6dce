"""Demonstrations kept as seeds, controls and hashes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rhirl.demos.demonstrations import DemonstrationError, Metadata
from rhirl.demos.recordings import Recordings, digest, read_recordings, record, write_recordings

CONTROLS = [np.full((3, 2), 0.25, np.float32), np.full((5, 2), -0.5, np.float32)]
META = Metadata("walk", "Walk-v0", 0.2, (1.0, 2.0), (11, 12), "a test", {})


def play(seed: int, controls: np.ndarray) -> np.ndarray:
    """A world that adds up its controls, from its seed on; every number shows as a 2 x 2 picture."""
    path = np.concatenate([[0.0], np.cumsum(controls[:, 0] * 4)]) + seed
    return np.tile(path.astype(np.uint8)[:, None, None, None], (1, 2, 2, 1))


@pytest.fixture
def recordings() -> Recordings:
    return record(CONTROLS, META, play, horizon=6)


def test_what_is_written_is_read(recordings: Recordings, tmp_path: Path) -> None:
    write_recordings(recordings, tmp_path / "walk.recording.npz")
    again = read_recordings(tmp_path / "walk.recording.npz")
    assert again.meta == META
    assert np.array_equal(again.controls, recordings.controls)
    assert again.lengths.tolist() == [3, 5]
    again.check(play)


def test_played_demonstrations_are_the_episodes(recordings: Recordings) -> None:
    demos = recordings.demonstrations(play)
    assert demos.observations.shape == (2, 7, 2, 2, 1)
    assert demos.observations[0, :4, 0, 0, 0].tolist() == [11, 12, 13, 14]
    assert demos.observations[1, :6, 0, 0, 0].tolist() == [12, 10, 8, 6, 4, 2]
    assert demos.lengths.tolist() == [3, 5]
    assert demos.controls is not None
    assert np.array_equal(demos.controls[1, :5], CONTROLS[1])
    assert recordings.take(1).demonstrations(play).meta.seeds == (11,)


def test_one_pixel_off_is_refused(recordings: Recordings) -> None:
    def wrong(seed: int, controls: np.ndarray) -> np.ndarray:
        frames = play(seed, controls)
        frames[-1, 1, 1, 0] ^= seed == 12
        return frames

    with pytest.raises(DemonstrationError, match="episode 1"):
        recordings.check(wrong)


def test_the_digest_knows_shape_and_type() -> None:
    x = np.arange(6, dtype=np.uint8)
    assert digest(x) == digest(x.copy())
    assert len({digest(x), digest(x.reshape(2, 3)), digest(x.astype(np.int8))}) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lengths": np.array([3, 9])}, "lengths"),
        ({"lengths": np.array([3])}, "disagree"),
        ({"controls": np.full((2, 6, 2), 1.5, np.float32)}, r"\[-1, 1\]"),
        ({"controls": np.full((2, 6, 2), np.nan, np.float32)}, r"\[-1, 1\]"),
        ({"controls": np.zeros((2, 6, 2))}, "float32"),
        ({"digests": np.zeros((2, 31), np.uint8)}, "disagree"),
    ],
)
def test_damage_is_named(recordings: Recordings, change: dict[str, Any], words: str) -> None:
    with pytest.raises(DemonstrationError, match=words):
        replace(recordings, **change)


def test_a_file_of_something_else_is_refused(recordings: Recordings, tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", lengths=np.arange(3))
    with pytest.raises(DemonstrationError, match="is this a recording"):
        read_recordings(tmp_path / "other.npz")
    old = replace(recordings, meta=replace(META, versions={"numpy": "0.1"}))
    write_recordings(old, tmp_path / "old.npz")
    with pytest.raises(DemonstrationError, match="made with numpy"):
        read_recordings(tmp_path / "old.npz")
    assert len(read_recordings(tmp_path / "old.npz", force=True)) == 2
