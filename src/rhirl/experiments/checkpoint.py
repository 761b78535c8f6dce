"""Checkpoints: a pytree of arrays in one safetensors file, written whole or not at all, and checked when read.

A file carries a SHA-256 over every name, type, shape and byte it holds. Truncated or altered files are refused, and
`latest` then falls back to the checkpoint before. Nothing in a file can execute.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rhirl.atomic import write_atomically

KEEP = 3


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, with the reason."""


def save_checkpoint(tree: Any, folder: Path, step: int) -> Path:
    """Write `folder/<step>.safetensors` and remove all but the newest few."""
    arrays = _flatten(tree)
    write_atomically(folder / f"{step:010d}.safetensors", save(arrays, metadata={"sha256": _digest(arrays)}))
    for old in checkpoints(folder)[:-KEEP]:
        old.unlink()
    return folder / f"{step:010d}.safetensors"


def load_checkpoint(path: Path, like: Any) -> Any:
    """Read a checkpoint into the structure of `like`, or say why it cannot be used."""
    try:
        with safe_open(path, framework="numpy") as file:
            digest = (file.metadata() or {}).get("sha256")
            arrays = {name: file.get_tensor(name) for name in list(file.keys())}
    except (SafetensorError, OSError, ValueError, AttributeError) as error:  # the last for types NumPy lacks
        raise CheckpointError(f"{path}: truncated or not a checkpoint ({error})") from None
    if digest != _digest(arrays):
        raise CheckpointError(f"{path}: damaged: its contents do not have the SHA-256 it was written with")
    expected = _flatten(like)
    if expected.keys() != arrays.keys():
        raise CheckpointError(
            f"{path}: holds other fields than this learner: {sorted(expected.keys() ^ arrays.keys())}"
        )
    leaves, structure = jax.tree.flatten(like)
    return jax.tree.unflatten(structure, [_as(leaf, arrays[n]) for leaf, n in zip(leaves, expected, strict=True)])


def checkpoints(folder: Path) -> list[Path]:
    """List the checkpoints of a folder, oldest first."""
    return sorted(path for path in folder.glob("*.safetensors") if path.stem.isdigit())


def latest(folder: Path, like: Any) -> tuple[Any, Path, list[CheckpointError]]:
    """Return the newest usable checkpoint, where it lies, and what was wrong with any newer ones."""
    refused: list[CheckpointError] = []
    for path in reversed(checkpoints(folder)):
        try:
            return load_checkpoint(path, like), path, refused
        except CheckpointError as error:
            refused.append(error)
    reasons = "; ".join(str(error) for error in refused) or "none was written"
    raise CheckpointError(f"{folder}: no usable checkpoint ({reasons})")


def _flatten(tree: Any) -> dict[str, NDArray[Any]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): _array(leaf) for path, leaf in leaves}


def _array(leaf: Any) -> NDArray[Any]:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.ascontiguousarray(leaf)


def _as(like: Any, array: NDArray[Any]) -> Any:
    """Return what was stored as what it was; scalars are stored as arrays of one."""
    if isinstance(like, jax.Array) and jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(array))
    if np.ndim(like) == 0:
        array = array.reshape(())
    return jnp.asarray(array) if isinstance(like, jax.Array) else array


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape};".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
