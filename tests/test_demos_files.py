"""The demonstration file and its validator: every mistake is named by file, episode and field."""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rhirl.demos import (
    DemonstrationError,
    Demonstrations,
    Metadata,
    bundled_demos,
    bundled_path,
    from_episodes,
    load_demos,
    read_demos,
    sha256,
    write_demos,
)

N, T = 3, 6
Entries = dict[str, Any]


def make_demos(**changes: Any) -> Demonstrations:
    rng = np.random.default_rng(0)
    meta = Metadata(
        task="puck",
        env_id="Puck-v0",
        noise=0.2,
        returns=(-1.5, float("nan"), 3.0),
        seeds=(5, 6, -1),
        source="a test",
        versions={"gymnasium": importlib.metadata.version("gymnasium")},
    )
    demos = Demonstrations(
        observations=rng.standard_normal((N, T + 1, 2)).astype(np.float32),
        lengths=np.array([T, 4, 2]),
        meta=meta,
        controls=rng.uniform(-1, 1, (N, T, 1)).astype(np.float32),
        system_states=rng.standard_normal((N, T + 1, 4)),
    )
    return replace(demos, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A demonstration file without a fault."""
    write_demos(make_demos(), tmp_path / "puck.npz")
    return tmp_path / "puck.npz"


def alter(path: Path, change: Callable[[Entries], Any]) -> None:
    """Write a file again after changing its entries; its metadata is handed over as a dictionary."""
    with np.load(path) as archive:
        entries: Entries = {name: archive[name] for name in archive.files}
    entries["metadata"] = json.loads(str(entries["metadata"]))
    change(entries)
    if isinstance(entries.get("metadata"), dict):
        entries["metadata"] = np.array(json.dumps(entries["metadata"]))
    np.savez_compressed(path, **entries)


def complaint(path: Path, **kwargs: Any) -> str:
    with pytest.raises(DemonstrationError) as error:
        read_demos(path, **kwargs)
    assert str(error.value).startswith(str(path))
    return str(error.value).removeprefix(f"{path}: ")


def test_a_file_comes_back_bit_for_bit(path: Path) -> None:
    written, read = make_demos(), read_demos(path, everything=True)
    for name in ("observations", "lengths", "controls", "system_states"):
        a, b = getattr(written, name), getattr(read, name)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    assert repr(read.meta) == repr(written.meta)
    assert (read.horizon, read.observation_shape, len(read)) == (T, (2,), N)
    assert [p.name for p in path.parent.iterdir()] == ["puck.npz"]


def test_controls_and_simulator_states_are_not_even_read_unless_asked_for(path: Path) -> None:
    read = read_demos(path)
    assert read.controls is None
    assert read.system_states is None
    alter(path, lambda entries: entries.update(controls=np.full((1, 1), np.nan)))
    assert read_demos(path).observations.shape == (N, T + 1, 2)
    assert "controls" in complaint(path, everything=True)


def test_images_come_back_as_bytes(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (N, T + 1, 4, 5, 3), np.uint8)
    write_demos(make_demos(observations=pixels), tmp_path / "images.npz")
    read = read_demos(tmp_path / "images.npz")
    assert read.observations.tobytes() == pixels.tobytes()
    assert read.observation_shape == (4, 5, 3)


def test_a_failed_write_leaves_the_file_before_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("power cut")

    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="power cut"):
                write_demos(make_demos(lengths=np.array([1, 1, 1])), path)
        assert path.read_bytes() == before


def test_states_are_those_the_episodes_have() -> None:
    demos = make_demos()
    states = demos.states()
    assert states.shape == (T + 1 + 5 + 3, 2)
    np.testing.assert_array_equal(states[T + 1 : T + 6], demos.observations[1, :5])


def test_taking_the_first_episodes() -> None:
    two = make_demos().take(2)
    assert (len(two), two.lengths.tolist(), two.meta.seeds) == (2, [T, 4], (5, 6))
    assert two.controls is not None
    assert two.system_states is not None
    assert len(two.controls) == len(two.system_states) == len(two.meta.returns) == 2
    for wrong in (0, -1, 4):
        with pytest.raises(DemonstrationError, match=f"{wrong} episodes asked for, but there are 3"):
            make_demos().take(wrong)


@pytest.mark.parametrize(
    ("share", "lengths"),
    [(0.0, [T, 4, 2]), (0.3, [T, 4, 2]), (0.34, [4, 4, 2]), (2 / 3, [4, 4, 2]), (0.7, [2, 2, 2]), (1.0, [2, 2, 2])],
)
def test_a_quorum_cuts_episodes_off_where_too_few_go_on(share: float, lengths: list[int]) -> None:
    whole = make_demos()
    cut = whole.quorate(share)
    assert (cut.lengths.tolist(), cut.horizon) == (lengths, lengths[0])
    np.testing.assert_array_equal(cut.observations, whole.observations[:, : lengths[0] + 1])
    assert cut.controls is not None
    assert cut.system_states is not None
    assert (cut.controls.shape[1], cut.system_states.shape[1]) == (lengths[0], lengths[0] + 1)
    assert cut.quorate(share).lengths.tolist() == lengths


def test_ragged_episodes_are_padded_with_their_last_state() -> None:
    meta = replace(make_demos().meta, returns=(0.0, 0.0), seeds=(0, 1))
    episodes = [np.ones((3, 2), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)]
    demos = from_episodes(episodes, meta, horizon=5, controls=[np.zeros((2, 1)), np.ones((3, 1))])
    assert demos.lengths.tolist() == [2, 3]
    np.testing.assert_array_equal(demos.observations[1, 3:], [[6, 7]] * 3)
    assert demos.controls is not None
    assert demos.controls.shape == (2, 5, 1)


@pytest.mark.parametrize(
    ("episodes", "controls", "words"),
    [
        ([], None, "no episodes"),
        ([np.zeros((3, 2)), np.zeros((3, 4))], None, "ragged: episodes have shapes"),
        ([np.zeros((3, 2)), np.zeros((1, 2))], None, "episode 1: 1 states"),
        ([np.zeros((3, 2)), np.zeros((7, 2))], None, "episode 1: 7 states"),
        (
            [np.zeros((3, 2)), np.zeros((3, 2))],
            [np.zeros((2, 1)), np.zeros((3, 1))],
            "episode 1: controls: 3 for 2",
        ),
    ],
)
def test_episodes_that_do_not_fit_are_named(
    episodes: list[NDArray[Any]], controls: list[NDArray[Any]] | None, words: str
) -> None:
    with pytest.raises(DemonstrationError, match=words):
        from_episodes([x.astype(np.float32) for x in episodes], make_demos().meta, horizon=5, controls=controls)


def put(name: str, where: tuple[int, ...], value: float) -> Callable[[Entries], Any]:
    return lambda entries: entries[name].__setitem__(where, value)


def cut(name: str, size: int) -> Callable[[Entries], Any]:
    return lambda entries: entries.update({name: entries[name][:size]})


def cast(name: str, dtype: Any) -> Callable[[Entries], Any]:
    return lambda entries: entries.update({name: entries[name].astype(dtype)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("observations", (1, 3, 0), np.nan), "episode 1: observations: not finite at step 3"),
        (put("observations", (2, 0, 1), np.inf), "episode 2: observations: not finite at step 0"),
        (put("lengths", (1,), 0), "episode 1: length 0 does not lie in 1…6"),
        (put("lengths", (2,), 7), "episode 2: length 7 does not lie in 1…6"),
        (put("lengths", (0,), -1), "episode 0: length -1"),
        (put("controls", (1, 2, 0), np.nan), "episode 1: controls: not finite"),
        (put("system_states", (0, 2, 0), np.nan), "episode 0: system_states: not finite"),
        (put("system_states", (0, T, 0), np.nan), "episode 0: system_states: not finite"),
        (cut("lengths", 2), "lengths must be 3 integers, not int64 of shape (2,)"),
        (cut("controls", 2), "controls: shape (2, 6, 1) does not start with (3, 6)"),
        (cut("system_states", 2), "system_states: shape (2, 7, 4) does not start with (3, 7)"),
        (cut("observations", 0), "observations hold 0 episodes of 6 steps"),
        (
            cast("observations", np.float64),
            "observations must be (episodes, steps + 1, …) of float32 or uint8, not float64",
        ),
        (cast("observations", "U8"), "observations must be"),
        (cast("lengths", np.float64), "lengths must be 3 integers, not float64"),
        (cast("controls", "U8"), "controls"),
        (cast("system_states", np.complex128), "system_states"),
        (lambda e: e.update(observations=e["observations"][:, :, 0]), "observations must be"),
        (lambda e: e.update(observations=e["observations"][:, :1]), "too short to learn from"),
        (lambda e: e.pop("observations"), "observations: missing"),
        (lambda e: e.pop("lengths"), "lengths: missing"),
        (lambda e: e.pop("metadata"), "metadata: missing: is this a demonstration file?"),
        (lambda e: e.update(metadata=np.array("{")), "metadata: not JSON"),
        (lambda e: e.update(metadata=np.array("[" * 100_000)), "metadata: not JSON"),
        (lambda e: e.update(metadata=np.array(3)), "metadata: missing"),
        (lambda e: e.update(metadata=np.array("[]")), "metadata: format is not rhirl-demonstrations-1"),
        (lambda e: e["metadata"].update(format="rhirl-demonstrations-9"), "metadata: format is not"),
        (lambda e: e["metadata"].pop("source"), "metadata: fields ['source'] missing or unknown"),
        (lambda e: e["metadata"].update(colour="red"), "metadata: fields ['colour'] missing or unknown"),
        (lambda e: e["metadata"].update(noise="loud"), "metadata: noise, returns, seeds or versions"),
        (lambda e: e["metadata"].update(returns=[1, 2]), "metadata: returns: 2 entries for 3 episodes"),
        (lambda e: e["metadata"].update(seeds=[1]), "metadata: seeds: 1 entries for 3 episodes"),
        (lambda e: e["metadata"].update(seeds=[float("inf")] * 3), "metadata: noise, returns, seeds or versions"),
        (lambda e: e["metadata"].update(seeds=5), "metadata: noise, returns, seeds or versions"),
        (lambda e: e["metadata"].update(versions=["gymnasium"]), "metadata: noise, returns, seeds or versions"),
        (lambda e: e["metadata"].update(task=["puck"]), "metadata: task"),
        (lambda e: e["metadata"].update(source=None), "metadata: source"),
    ],
)
def test_every_mistake_is_named(path: Path, change: Callable[[Entries], Any], words: str) -> None:
    alter(path, change)
    assert words in complaint(path, everything=True)


def test_the_wrong_task_or_environment_is_refused(path: Path) -> None:
    assert complaint(path, task="hopper") == "metadata: demonstrations of task puck, not hopper"
    assert complaint(path, env_id="Hopper-v5") == "metadata: demonstrations of environment Puck-v0, not Hopper-v5"
    assert len(read_demos(path, task="puck", env_id="Puck-v0")) == N


@pytest.mark.parametrize("made_with", [{"gymnasium": "0.29.1"}, {"a-package-nobody-has": "1.0"}])
def test_another_simulator_version_is_refused_unless_the_person_insists(
    path: Path, made_with: dict[str, str]
) -> None:
    alter(path, lambda entries: entries["metadata"].update(versions=made_with))
    ((package, version),) = made_with.items()
    words = complaint(path)
    assert f"made with {package} {version}" in words
    assert "--force" in words
    assert read_demos(path, force=True).meta.versions == made_with


def test_a_patch_release_is_the_same_simulator(path: Path) -> None:
    major, minor = importlib.metadata.version("gymnasium").split(".")[:2]
    alter(path, lambda entries: entries["metadata"].update(versions={"gymnasium": f"{major}.{minor}.99"}))
    assert len(read_demos(path)) == N


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none.npz") == "no such file"
    assert "not a readable demonstration file" in complaint(tmp_path)
    for content in (b"", b"PK\x03\x04", b"not a zip", b"\x93NUMPY\x01\x00"):
        (tmp_path / "odd.npz").write_bytes(content)
        assert "not a readable demonstration file" in complaint(tmp_path / "odd.npz")


def test_a_damaged_file_is_refused_or_read_as_it_was(path: Path) -> None:
    """A flipped bit may hit what nobody reads, such as a time stamp; what is read is then what was written."""
    whole, before = path.read_bytes(), read_demos(path)
    rng, refused = np.random.default_rng(0), 0
    for at in rng.choice(len(whole), 150, replace=False):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            read = read_demos(path)
        except DemonstrationError:
            refused += 1
            continue
        assert read.observations.tobytes() == before.observations.tobytes()
        assert read.lengths.tobytes() == before.lengths.tobytes()
        assert repr(read.meta) == repr(before.meta)
    assert refused > 50


def test_a_truncated_file_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(0, len(whole), len(whole) // 20):
        path.write_bytes(whole[:size])
        complaint(path)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_pendulum_demonstrations_are_bundled(noise: float) -> None:
    demos = load_demos("pendulum", noise)
    assert demos.observations.shape == (20, 101, 3)
    assert demos.lengths.tolist() == [100] * 20
    assert demos.controls is None
    assert demos.meta.noise == noise
    assert demos.meta.env_id == "Pendulum-v1"
    assert len(set(demos.meta.seeds)) == 20
    assert np.isfinite(demos.meta.returns).all()
    np.testing.assert_allclose(np.square(demos.observations[..., :2]).sum(axis=-1), 1, rtol=1e-5)
    assert np.mean(demos.meta.returns) > -350


def test_bundled_files_are_all_readable_and_named_by_what_they_hold() -> None:
    for (task, noise), path in bundled_demos().items():
        demos = read_demos(path, force=True)
        assert (demos.meta.task, demos.meta.noise) == (task, noise)
        assert path == bundled_path(task, noise)
        assert len(sha256(path)) == 64


def test_what_is_not_bundled_is_named_with_what_is() -> None:
    with pytest.raises(
        DemonstrationError, match=r"no demonstrations of pendulum at .* = 0\.3 .*; there are .*pendulum"
    ):
        load_demos("pendulum", 0.3)
    assert len(load_demos("pendulum", episodes=4)) == 4
