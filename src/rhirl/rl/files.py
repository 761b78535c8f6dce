"""Pytrees of arrays as safetensors files: exact, atomic, and never able to execute anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as serialise

from rhirl.atomic import write_atomically

Tree = TypeVar("Tree")


def name(path: tuple[Any, ...]) -> str:
    """Name a leaf by its place in the tree: `actor.body.weights.0`."""
    return ".".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path)


def save(path: Path, tree: Any, metadata: dict[str, str] | None = None) -> None:
    """Write the arrays of a pytree; the file appears whole or not at all."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    arrays = {name(place): np.array(leaf, order="C") for place, leaf in leaves}
    write_atomically(path, serialise(arrays, metadata))


def load(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read all arrays by name, and the metadata."""
    with safe_open(path, framework="numpy") as file:
        names = file.keys()
        return {key: file.get_tensor(key) for key in names}, dict(file.metadata() or {})


def fill(tree: Tree, arrays: dict[str, np.ndarray], source: Path) -> Tree:
    """Put arrays into a tree of the same shape, leaf by leaf."""

    def leaf(place: tuple[Any, ...], old: Any) -> np.ndarray:
        key = name(place)
        if key not in arrays or arrays[key].shape != np.shape(old):
            found = arrays[key].shape if key in arrays else "nothing"
            raise ValueError(f"{source} does not fit: {key} should have shape {np.shape(old)}, found {found}")
        return arrays[key]

    return jax.tree_util.tree_map_with_path(leaf, tree)
