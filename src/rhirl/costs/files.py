"""Cost files: safetensors with the shape of the network in the header. Nothing in them can execute."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

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
    temporary = path.with_name(path.name + ".tmp")
    save_file(_tensors(cost), temporary, metadata={"rhirl": json.dumps(description)})
    os.replace(temporary, path)


def load_cost(path: str | Path) -> Cost:
    """Read a cost written by `save_cost`, or say why it cannot be read."""
    try:
        with safe_open(path, framework="numpy") as file:
            description = json.loads((file.metadata() or {}).get("rhirl", "{}"))
            tensors = {name: file.get_tensor(name) for name in list(file.keys())}
    except FileNotFoundError:
        raise CostFileError(f"{path}: no such file") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise CostFileError(f"{path}: not a readable safetensors file ({error})") from None
    if description.get("format") != FORMAT:
        raise CostFileError(f"{path}: a safetensors file, but not a cost ({FORMAT}) written by rhirl")
    n, hidden = int(description["n"]), [int(h) for h in description["hidden"]]
    blank = Cost(Normaliser.of(np.zeros((1, n))), MLP.of(jax.random.key(0), n, hidden))
    expected = _tensors(blank)
    if {k: v.shape for k, v in expected.items()} != {k: v.shape for k, v in tensors.items()}:
        raise CostFileError(f"{path}: tensors do not fit a network with {n} inputs and hidden layers {hidden}")
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise CostFileError(f"{path}: {name} holds values that are not finite")
    leaves = [jnp.asarray(tensors[name]) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(blank), leaves)


def _tensors(cost: Cost) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_flatten_with_path(cost)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}
