"""The two networks of SAC: a tanh-Gaussian actor and an ensemble of critics.

Shapes: batch `B`, observations `n`, controls `m`, critics `E`.

Both are built on one multilayer perceptron whose arrays may carry a leading ensemble axis: matrix products
broadcast over it, so E critics are one network with weights (E, in, out). It uses nothing but array methods and
therefore runs on JAX arrays inside a jitted update and on NumPy arrays where environments are stepped.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

LOG_STD_RANGE = (-20.0, 2.0)
# The float32 neighbour of one: the largest |control| whose inverse tanh is finite.
ALMOST_ONE = 1.0 - 2.0**-24


class MLP(eqx.Module):
    """Linear layers with ReLU between them, optionally layer-normalised before each ReLU.

    weights[i]: (*ensemble, in, out); biases[i], gains[i], offsets[i]: (*ensemble, out). `gains` and `offsets`
    are empty without layer normalisation.
    """

    weights: tuple[Any, ...]
    biases: tuple[Any, ...]
    gains: tuple[Any, ...]
    offsets: tuple[Any, ...]

    @classmethod
    def create(
        cls, key: PRNGKeyArray, sizes: tuple[int, ...], *, ensemble: tuple[int, ...] = (), layer_norm: bool = False
    ) -> MLP:
        """Draw weights and biases uniformly from ±1/√in, as is usual for SAC."""
        weights, biases = [], []
        for k, (n_in, n_out) in zip(jax.random.split(key, len(sizes) - 1), pairwise(sizes), strict=True):
            bound = 1.0 / math.sqrt(n_in)
            drawn = jax.random.uniform(k, (*ensemble, n_in + 1, n_out), minval=-bound, maxval=bound)
            weights.append(drawn[..., :-1, :])
            biases.append(drawn[..., -1, :])
        normalised = sizes[1:-1] if layer_norm else ()
        gains = tuple(jnp.ones((*ensemble, width)) for width in normalised)
        offsets = tuple(jnp.zeros((*ensemble, width)) for width in normalised)
        return cls(tuple(weights), tuple(biases), gains, offsets)

    def __call__(self, x: Any) -> Any:
        """Map (B, in) to (*ensemble, B, out)."""
        gains, offsets = self.gains, self.offsets  # read once: a module's attributes are dear to look up
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if i > 0:
                if gains:
                    x = x - x.mean(-1, keepdims=True)
                    x = x * ((x * x).mean(-1, keepdims=True) + 1e-6) ** -0.5
                    x = x * gains[i - 1][..., None, :] + offsets[i - 1][..., None, :]
                x = x.clip(0.0)
            x = x @ weight + bias[..., None, :]
        return x


class Actor(eqx.Module):
    """The policy u = tanh(z), z ~ N(μ(x), σ(x)²): controls in [-1, 1]."""

    body: MLP

    @classmethod
    def create(
        cls, key: PRNGKeyArray, n: int, m: int, hidden: tuple[int, ...], *, layer_norm: bool = False
    ) -> Actor:
        """Build an actor from n observations to m controls."""
        return cls(MLP.create(key, (n, *hidden, 2 * m), layer_norm=layer_norm))

    def __call__(self, x: Any) -> tuple[Any, Any]:
        """Return μ and log σ, both (B, m)."""
        out = self.body(x)
        m = out.shape[-1] // 2
        return out[..., :m], out[..., m:].clip(*LOG_STD_RANGE)


class Critic(eqx.Module):
    """E action values Q(x, u)."""

    body: MLP

    @classmethod
    def create(
        cls, key: PRNGKeyArray, n: int, m: int, hidden: tuple[int, ...], *, count: int = 2, layer_norm: bool = False
    ) -> Critic:
        """Build `count` independent critics."""
        return cls(MLP.create(key, (n + m, *hidden, 1), ensemble=(count,), layer_norm=layer_norm))

    def __call__(self, x: Array, u: Array) -> Array:
        """Return (E, B)."""
        return self.body(jnp.concatenate([x, u], axis=-1))[..., 0]


def sample(actor: Actor, x: Array, noise: Array) -> tuple[Array, Array]:
    """Draw controls u (B, m) with their log-density log π(u|x) (B,), from standard normal `noise` (B, m).

    log π(u|x) = Σ_i log N(z_i; μ_i, σ_i²) - log(1 - tanh² z_i), the last term written as
    2 (log 2 - z - softplus(-2z)), which is exact where tanh has saturated.
    """
    mean, log_std = actor(x)
    z = mean + jnp.exp(log_std) * noise
    log_normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    squash = 2.0 * (math.log(2.0) - z - jax.nn.softplus(-2.0 * z))
    return jnp.tanh(z), (log_normal - squash).sum(-1)


def log_density(actor: Actor, x: Array, u: Array) -> Array:
    """Log-density log π(u|x) (B,) of given controls u (B, m).

    A control that was rounded to ±1 is read as the nearest number inside, so the result is always finite.
    """
    mean, log_std = actor(x)
    u = u.clip(-ALMOST_ONE, ALMOST_ONE)
    # 1 - |u| is exact in floating point here, so neither logarithm loses digits near the boundary.
    z = 0.5 * (jnp.log1p(u) - jnp.log1p(-u))
    log_normal = -0.5 * ((z - mean) * jnp.exp(-log_std)) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    return (log_normal - jnp.log1p(-u) - jnp.log1p(u)).sum(-1)


def act(actor: Actor, x: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
    """Controls (B, m) in NumPy, for an actor whose arrays are NumPy's: tanh μ, or a draw where noise is given."""
    if noise is None:
        out = actor.body(x)
        return np.tanh(out[..., : out.shape[-1] // 2])
    mean, log_std = actor(x)
    return np.tanh(mean + np.exp(log_std) * noise)


def to_numpy(tree: Any) -> Any:
    """Copy every array of a pytree to NumPy."""
    return jax.tree.map(np.array, tree)
