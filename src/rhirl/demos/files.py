"""The demonstration file: a compressed `.npz` of plain arrays with its metadata as JSON.

| entry           | what                                                    |
|-----------------|---------------------------------------------------------|
| `metadata`      | JSON text: format, task, env_id, noise, returns, …      |
| `observations`  | (N, T + 1, *n) float32 or uint8                         |
| `lengths`       | (N,) int64, steps of each episode                       |
| `controls`      | optional (N, T, m) float32                              |
| `system_states` | optional (N, T + 1, s) float64                          |

Arrays are read with pickling forbidden, so a file cannot execute anything; its declared size is checked before a
byte of it is unpacked. Optional entries are only read when asked for.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import math
import zipfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.atomic import write_atomically
from rhirl.demos.demonstrations import DemonstrationError, Demonstrations, Metadata, validate

FORMAT = "rhirl-demonstrations-1"
LARGEST = 2**32  # bytes unpacked; a file that claims more is refused before it is read
OPTIONAL = ("controls", "system_states")


def write_demos(demos: Demonstrations, path: str | Path) -> None:
    """Write a demonstration file, whole or not at all."""
    entries: dict[str, Any] = {"observations": demos.observations, "lengths": demos.lengths.astype(np.int64)}
    entries |= {name: getattr(demos, name) for name in OPTIONAL if getattr(demos, name) is not None}
    entries["metadata"] = np.array(json.dumps(describe(demos.meta), allow_nan=False))
    pack(Path(path), entries)


def read_demos(
    path: str | Path,
    *,
    task: str | None = None,
    env_id: str | None = None,
    everything: bool = False,
    force: bool = False,
) -> Demonstrations:
    """Read and check a demonstration file.

    Args:
        path: The file.
        task: If given, demonstrations of any other task are refused.
        env_id: If given, demonstrations of any other environment are refused.
        everything: Also read controls and simulator states, where the file has them.
        force: Accept demonstrations made with other simulator versions than those installed.
    """
    name = str(path)
    entries = unpack(Path(path), {"metadata", "observations", "lengths", *(OPTIONAL if everything else ())})
    meta = _metadata(entries.pop("metadata", None), name)
    for missing in {"observations", "lengths"} - entries.keys():
        raise DemonstrationError(f"{name}: {missing}: missing")
    for wanted, found, what in ((task, meta.task, "task"), (env_id, meta.env_id, "environment")):
        if wanted is not None and found != wanted:
            raise DemonstrationError(f"{name}: metadata: demonstrations of {what} {found}, not {wanted}")
    if not force:
        check_versions(meta, name)
    try:
        demos = Demonstrations(meta=meta, **entries)
    except DemonstrationError as error:
        raise DemonstrationError(str(error).replace("demonstrations", name, 1)) from None
    validate(demos, name)
    return demos


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file, which runs record to say what they learned from."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def pack(path: Path, entries: dict[str, Any]) -> None:
    """Write arrays as a compressed `.npz`, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **entries)
    write_atomically(path, content.getbuffer())


def unpack(path: Path, wanted: set[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the wanted arrays of an `.npz` (all of them by default), never anything pickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST:
            raise DemonstrationError(f"{path}: unpacks to {size} bytes, more than the {LARGEST} allowed")
        with np.load(path, allow_pickle=False) as archive:
            entries = {name: archive[name] for name in archive.files if wanted is None or name in wanted}
        for name, array in entries.items():
            if not isinstance(array, np.ndarray):
                raise DemonstrationError(f"{path}: {name}: not an array")
        return entries
    except FileNotFoundError:
        raise DemonstrationError(f"{path}: no such file") from None
    except DemonstrationError:
        raise
    except (
        Exception
    ) as error:  # archives, compressors and arrays fail in many ways; all of them are the file's fault
        raise DemonstrationError(f"{path}: not a readable demonstration file ({error})") from None


def _metadata(text: NDArray[Any] | None, name: str) -> Metadata:
    if text is None or text.dtype.kind != "U" or text.ndim:
        raise DemonstrationError(f"{name}: metadata: missing: is this a demonstration file?")
    try:
        values = json.loads(str(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DemonstrationError(f"{name}: metadata: not JSON ({error})") from None
    return parse(values, name)


def describe(meta: Metadata) -> dict[str, Any]:
    """Metadata as it stands in files: plain JSON, with `null` for a return nobody knows."""
    returns = [r if math.isfinite(r) else None for r in meta.returns]
    return {"format": FORMAT, **asdict(meta), "returns": returns}


def parse(values: Any, name: str) -> Metadata:
    """Read back what `describe` wrote."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise DemonstrationError(f"{name}: metadata: format is not {FORMAT}")
    values = {key: value for key, value in values.items() if key != "format"}
    known = {f.name for f in fields(Metadata)}
    if values.keys() != known:
        raise DemonstrationError(f"{name}: metadata: fields {sorted(values.keys() ^ known)} missing or unknown")
    for key in ("task", "env_id", "source"):
        if not isinstance(values[key], str):
            raise DemonstrationError(f"{name}: metadata: {key}: text is wanted, not {values[key]!r}")
    try:
        values["noise"] = float(values["noise"])
        values["returns"] = tuple(math.nan if r is None else float(r) for r in values["returns"])
        values["seeds"] = tuple(int(s) for s in values["seeds"])
        values["versions"] = {str(package): str(v) for package, v in values["versions"].items()}
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DemonstrationError(f"{name}: metadata: noise, returns, seeds or versions: {error}") from None
    return Metadata(**values)


def check_versions(meta: Metadata, name: str) -> None:
    """Refuse states of another simulator: the same controls would not lead to them here."""
    for package, made_with in meta.versions.items():
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            installed = "none"
        if installed.split(".")[:2] != made_with.split(".")[:2]:
            raise DemonstrationError(
                f"{name}: made with {package} {made_with}, but {installed} is installed; collect them anew, "
                "install that version, or insist with force=True (--force)"
            )
