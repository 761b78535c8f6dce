"""Cost files: safetensors with the shape of the network in the header. Nothing in them can execute."""

from __future__ import annotations

import json
import os
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rhirl.costs.mlp import MLP, Cost, Normaliser

FORMAT = "rhirl-cost-1"


class CostFileError(ValueError):
    """A cost file that cannot be used, with the reason."""


def save_cost(cost: Cost, path: str | Path) -> None:
    """Write a cost: first under a temporary name, then renamed, so that the file is whole or absent."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    n, *hidden = [weight.shape[0] for weight in cost.network.weights]
    description = {"format": FORMAT, "kind": "mlp", "n": n, "hidden": hidden}
    tensors = {name: np.asarray(leaf) for name, leaf in _named(cost).items()}
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(save(tensors, metadata={"rhirl": json.dumps(description)}))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


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
        blank = _blank(int(description["n"]), [int(h) for h in description["hidden"]])
    except (KeyError, TypeError, ValueError):
        raise CostFileError(f"{path}: its description does not name the sizes of a network") from None
    expected = _named(blank)
    if {name: leaf.shape for name, leaf in expected.items()} != {name: t.shape for name, t in tensors.items()}:
        raise CostFileError(
            f"{path}: tensors do not fit a network with {description['n']} inputs and "
            f"hidden layers {description['hidden']}"
        )
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32:
            raise CostFileError(f"{path}: {name} holds {tensor.dtype} instead of float32")
        if not np.isfinite(tensor).all():
            raise CostFileError(f"{path}: {name} holds values that are not finite")
    leaves = [jnp.asarray(tensors[name]) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(blank), leaves)


def _blank(n: int, hidden: list[int]) -> Cost:
    """Lay out a cost by shapes alone: a file may claim any size, and nothing is allocated for a claim."""
    shape: Any = partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
    weights = tuple(shape(sizes) for sizes in pairwise([n, *hidden, 1]))
    return Cost(Normaliser(shape((n,)), shape((n,)), shape(())), MLP(weights, tuple(shape((h,)) for h in hidden)))


def _named(cost: Cost) -> dict[str, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(cost)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
