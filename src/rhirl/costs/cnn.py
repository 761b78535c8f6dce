"""A cost network for images: four 3 x 3 convolutions to 128 features, then the ReLU network of `mlp.py`.

    g(x) = MLP(features(2x/255 − 1)),   features: (h, w, c) → 16 → 32 → 32 → 32 channels → means of four quarters

The first convolution has stride 3, the others 2, so that 48 x 48 pixels become 2 x 2: each feature then still knows
in which quarter of the picture it was seen. Other sizes end in larger maps, whose quarters are averaged.

Planning asks for thousands of costs at every step. On a processor, blocks of pictures that fit its cache take half
the time of all at once; what is differentiated goes through in one piece, for which XLA has better code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from rhirl.costs.mlp import MLP, uniform

CHANNELS = (16, 32, 32, 32)
FEATURES = 4 * CHANNELS[-1]
FIRST_STRIDE, STRIDE = 3, 2
BLOCK = 64
"""Pictures that go through the network together on a processor."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pixels:
    """z = mask · x: what of a picture a cost may see. Bytes stay bytes; the network scales them."""

    mask: Array
    """(h, w, 1) zero where the cost is blind."""

    @classmethod
    def of(cls, shape: Sequence[int], blind: ArrayLike | None = None) -> Self:
        """See pictures of a shape (h, w, c), but not where `blind` (h, w) says so."""
        mask = jnp.ones((*shape[:2], 1), jnp.float32)
        return cls(mask if blind is None else mask * (1 - jnp.asarray(blind, jnp.float32))[..., None])

    def __call__(self, x: Array) -> Array:
        """Black out what must not be seen in x (..., h, w, c)."""
        return jnp.where(self.mask > 0, x, jnp.zeros((), x.dtype))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CNN:
    """A network (..., h, w, c) → (...) on pixels from 0 to 255."""

    kernels: tuple[Array, ...]
    """Four, (3, 3, channels in, channels out)."""
    biases: tuple[Array, ...]
    """Four, (channels out,)"""
    head: MLP
    """(128,) → ()"""

    @classmethod
    def of(cls, key: Array, channels: int, hidden: Sequence[int]) -> Self:
        """Draw a network for pictures with this many channels, with hidden layers after the features."""
        key_head, *keys = jax.random.split(key, 1 + 2 * len(CHANNELS))
        sizes = [channels, *CHANNELS]
        kernels = [uniform(k, (3, 3, a, b), 9 * a) for k, a, b in zip(keys[::2], sizes[:-1], CHANNELS, strict=True)]
        biases = [uniform(k, (b,), 9 * a) for k, a, b in zip(keys[1::2], sizes[:-1], CHANNELS, strict=True)]
        return cls(tuple(kernels), tuple(biases), MLP.of(key_head, FEATURES, hidden))

    def __call__(self, z: Array) -> Array:
        """Evaluate on any batch of pictures."""
        pictures = z.reshape(-1, *z.shape[-3:])
        return self.head(features(self.kernels, self.biases, pictures)).reshape(z.shape[:-3])


@jax.custom_vjp
def features(kernels: tuple[Array, ...], biases: tuple[Array, ...], pictures: Array) -> Array:
    """Return the 128 features of pictures (N, h, w, c)."""
    convolve = partial(_features, kernels, biases)
    if jax.default_backend() != "cpu" or len(pictures) <= BLOCK:
        return convolve(pictures)
    whole = len(pictures) // BLOCK * BLOCK
    blocks = pictures[:whole].reshape(-1, BLOCK, *pictures.shape[1:])
    found = jax.lax.map(convolve, blocks).reshape(whole, FEATURES)
    return found if whole == len(pictures) else jnp.concatenate([found, convolve(pictures[whole:])])


def _forward(
    kernels: tuple[Array, ...], biases: tuple[Array, ...], pictures: Array
) -> tuple[Array, tuple[tuple[Array, ...], tuple[Array, ...], Array]]:
    return features(kernels, biases, pictures), (kernels, biases, pictures)


def _backward(
    inputs: tuple[tuple[Array, ...], tuple[Array, ...], Array], gradient: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...], None]:
    kernels, biases, pictures = inputs
    pull_back = jax.vjp(lambda kernels, biases: _features(kernels, biases, pictures), kernels, biases)[1]
    return (*pull_back(gradient), None)


features.defvjp(_forward, _backward)


def _features(kernels: tuple[Array, ...], biases: tuple[Array, ...], pictures: Array) -> Array:
    z = pictures.astype(jnp.float32) * (2 / 255) - 1
    z = jax.nn.relu(_convolve_apart(z, kernels[0]) + biases[0])
    for kernel, bias in zip(kernels[1:], biases[1:], strict=True):
        z = jax.lax.conv_general_dilated(
            z, kernel, (STRIDE, STRIDE), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        z = jax.nn.relu(z + bias)
    return _quarters(z)


def _convolve_apart(z: Array, kernel: Array) -> Array:
    """Convolve with a 3 x 3 kernel and stride 3: no two patches overlap, so it is one product of matrices."""
    N, h, w, c = z.shape
    rows, columns = -(-h // FIRST_STRIDE), -(-w // FIRST_STRIDE)
    z = jnp.pad(z, ((0, 0), (0, rows * FIRST_STRIDE - h), (0, columns * FIRST_STRIDE - w), (0, 0)))
    patches = z.reshape(N, rows, FIRST_STRIDE, columns, FIRST_STRIDE, c).transpose(0, 1, 3, 2, 4, 5)
    return (patches.reshape(-1, 9 * c) @ kernel.reshape(9 * c, -1)).reshape(N, rows, columns, -1)


def _quarters(z: Array) -> Array:
    """Average the quarters of maps (N, h, w, c), which share the middle line of an odd side: (N, 4c)."""
    h, w = -(-z.shape[1] // 2), -(-z.shape[2] // 2)
    top, bottom = z[:, :h], z[:, -h:]
    quarters = (top[:, :, :w], top[:, :, -w:], bottom[:, :, :w], bottom[:, :, -w:])
    return jnp.concatenate([quarter.mean(axis=(1, 2)) for quarter in quarters], axis=-1)
