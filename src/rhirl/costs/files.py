"""Cost files: safetensors with the shape of the network in the header. Nothing in them can execute."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rhirl.atomic import write_atomically
from rhirl.costs.cnn import CHANNELS, CNN, FEATURES, Pixels
from rhirl.costs.cost import Cost
from rhirl.costs.mlp import MLP, Normaliser

FORMAT = "rhirl-cost-1"


class CostFileError(ValueError):
    """A cost file that cannot be used, with the reason."""


def save_cost(cost: Cost, path: str | Path, notes: Mapping[str, float] | None = None) -> None:
    """Write a cost, and numbers to be kept with it; the file is whole or absent."""
    description = {"format": FORMAT, **_description(cost), **({"notes": dict(notes)} if notes else {})}
    tensors = {name: np.asarray(leaf) for name, leaf in _named(cost).items()}
    write_atomically(Path(path), save(tensors, metadata={"rhirl": json.dumps(description)}))


def load_cost(path: str | Path) -> Cost:
    """Read a cost written by `save_cost`, or say why it cannot be read."""
    try:
        with safe_open(path, framework="numpy") as file:
            description = json.loads((file.metadata() or {}).get("rhirl", "{}"))
            tensors = {name: file.get_tensor(name) for name in list(file.keys())}
    except FileNotFoundError:
        raise CostFileError(f"{path}: no such file") from None
    except (SafetensorError, OSError, ValueError, AttributeError) as error:  # the last for types NumPy lacks
        raise CostFileError(f"{path}: not a readable safetensors file ({error})") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise CostFileError(f"{path}: a safetensors file, but not a cost ({FORMAT}) written by rhirl")
    try:
        blank = _blank(description)
    except (KeyError, TypeError, ValueError):
        raise CostFileError(f"{path}: its description does not name the sizes of a network") from None
    expected = _named(blank)
    if {name: leaf.shape for name, leaf in expected.items()} != {name: t.shape for name, t in tensors.items()}:
        raise CostFileError(
            f"{path}: tensors do not fit a network with {description.get('shape') or description['n']} inputs and "
            f"hidden layers {description['hidden']}"
        )
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32:
            raise CostFileError(f"{path}: {name} holds {tensor.dtype} instead of float32")
        if not np.isfinite(tensor).all():
            raise CostFileError(f"{path}: {name} holds values that are not finite")
    leaves = [jnp.asarray(tensors[name]) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(blank), leaves)


def load_notes(path: str | Path) -> dict[str, float]:
    """Read the numbers that are kept with a cost."""
    with safe_open(path, framework="numpy") as file:
        notes = json.loads(file.metadata()["rhirl"]).get("notes", {})
    return {str(name): float(value) for name, value in notes.items()}


def _description(cost: Cost) -> dict[str, Any]:
    """Say what it takes to lay a cost out again."""
    if isinstance(cost.network, CNN):
        shape = [*cost.normalise.mask.shape[:2], cost.network.kernels[0].shape[2]]
        hidden = [weight.shape[0] for weight in cost.network.head.weights[1:]]
        return {"kind": "cnn", "shape": shape, "hidden": hidden}
    n, *hidden = [weight.shape[0] for weight in cost.network.weights]
    return {"kind": "mlp", "n": n, "hidden": hidden}


def _blank(description: dict[str, Any]) -> Cost:
    """Lay out a cost by shapes alone: a file may claim any size, and nothing is allocated for a claim."""
    hidden = [int(h) for h in description["hidden"]]
    if description.get("kind") != "cnn":
        n = int(description["n"])
        return Cost(Normaliser(_shape(n), _shape(n), _shape()), _blank_mlp(n, hidden))
    height, width, channels = (int(size) for size in description["shape"])
    kernels = tuple(_shape(3, 3, *sizes) for sizes in pairwise([channels, *CHANNELS]))
    network = CNN(kernels, tuple(_shape(b) for b in CHANNELS), _blank_mlp(FEATURES, hidden))
    return Cost(Pixels(_shape(height, width, 1)), network)


def _blank_mlp(n: int, hidden: list[int]) -> MLP:
    weights = tuple(_shape(*sizes) for sizes in pairwise([n, *hidden, 1]))
    return MLP(weights, tuple(_shape(h) for h in hidden))


def _shape(*sizes: int) -> Any:
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def _named(cost: Cost) -> dict[str, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(cost)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
