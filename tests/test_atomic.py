"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rhirl.atomic import write_atomically


def test_a_file_is_written_with_its_folder_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    for content in (b"first", memoryview(b"second")):
        write_atomically(path, content)
        assert path.read_bytes() == bytes(content)
    assert list(path.parent.iterdir()) == [path]


def fail(*_: Any) -> None:
    raise OSError("power cut")


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_power_cut_leaves_the_file_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"first")
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="power cut"):
        write_atomically(path, b"second")
    assert path.read_bytes() == b"first"
