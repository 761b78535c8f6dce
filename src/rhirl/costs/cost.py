"""The state cost g(x; θ): a network behind a normaliser, for vectors and for images alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from rhirl.costs.cnn import CNN, Pixels
from rhirl.costs.mlp import MLP, Normaliser

Network = MLP | CNN
N = TypeVar("N", bound=Normaliser | Pixels)
W = TypeVar("W", bound=Network)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cost(Generic[N, W]):
    """g(x; θ): `normalise` is fixed, `network` holds θ."""

    normalise: N
    network: W

    def __call__(self, x: Array) -> Array:
        """Return g for any batch of observations: (..., *n) → (...)."""
        return self.network(self.normalise(jnp.asarray(x)))


def network_of(key: Array, shape: Sequence[int], hidden: Sequence[int]) -> Network:
    """Draw a network for observations of a shape: convolutions for an image (h, w, c), none for a vector (n,)."""
    return CNN.of(key, shape[2], hidden) if len(shape) == 3 else MLP.of(key, shape[0], hidden)


def normaliser_of(observations: ArrayLike, *, floor: float, limit: float) -> Normaliser | Pixels:
    """Make the normaliser of demonstrated states (N, *n)."""
    shape = np.shape(observations)
    return Pixels.of(shape[1:]) if len(shape) == 4 else Normaliser.of(observations, floor=floor, limit=limit)
