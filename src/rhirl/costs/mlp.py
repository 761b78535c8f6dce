"""A cost network for vectors, and what it sees of them.

    g(x) = network(clip((x − mean) / deviation, ±limit))

The normaliser is made once from the demonstrations and never learned: planner samples reach states far outside
the demonstrations, where a ReLU network extrapolates linearly and MPPI would exploit it; clipping stops that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Normaliser:
    """z = clip((x − mean) / deviation, ±limit)."""

    mean: Array
    deviation: Array
    limit: Array

    @classmethod
    def of(cls, observations: ArrayLike, *, floor: float = 1e-2, limit: float = 5.0) -> Self:
        """Take mean and deviation over all but the last axis.

        Args:
            observations: (..., n) demonstrated states.
            floor: Smallest deviation; a coordinate that hardly moves in the demonstrations would otherwise turn
                a hair's breadth into a huge number.
            limit: Where z is clipped.
        """
        x = np.asarray(observations, np.float64).reshape(-1, np.shape(observations)[-1])
        deviation = np.maximum(x.std(axis=0), floor)
        return cls(*(jnp.asarray(a, jnp.float32) for a in (x.mean(axis=0), deviation, limit)))

    def __call__(self, x: Array) -> Array:
        """Normalise x (..., n)."""
        return jnp.clip((jnp.asarray(x, jnp.float32) - self.mean) / self.deviation, -self.limit, self.limit)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MLP:
    """A ReLU network (..., n) → (...). Without an output bias: the objective cannot see a constant in g."""

    weights: tuple[Array, ...]
    """(n, h₁), (h₁, h₂), …, (h_last, 1)"""
    biases: tuple[Array, ...]
    """(h₁,), …, (h_last,)"""

    @classmethod
    def of(cls, key: Array, n: int, hidden: Sequence[int]) -> Self:
        """Draw a network with n inputs and these hidden layers."""
        sizes = [n, *hidden, 1]
        keys = jax.random.split(key, 2 * len(sizes))
        weights = [uniform(k, (a, b), a) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=False)]
        biases = [uniform(k, (b,), a) for k, a, b in zip(keys[len(sizes) :], sizes[:-2], sizes[1:-1], strict=False)]
        return cls(tuple(weights), tuple(biases))

    def __call__(self, z: Array) -> Array:
        """Evaluate on any batch of inputs."""
        for weight, bias in zip(self.weights[:-1], self.biases, strict=True):
            z = jax.nn.relu(z @ weight + bias)
        return (z @ self.weights[-1])[..., 0]


def uniform(key: Array, shape: tuple[int, ...], fan_in: int) -> Array:
    """Draw from ±1/√fan_in, the usual start for a layer with `fan_in` inputs."""
    bound = fan_in**-0.5
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)
