"""The replay buffer: a ring of transitions in one array.

A transition (x, u, r, d, x') is one row of 2n + m + 2 numbers, so inserting is one scatter and drawing a batch
one gather, on any device. `d` is 1 where the episode really ended (a fall, a landing) and 0 everywhere else,
the time limit included: only a real end has no future value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray


class Transitions(NamedTuple):
    """B transitions, as NumPy or JAX arrays."""

    x: Any
    """(B, n) observations."""
    u: Any
    """(B, m) controls in [-1, 1]."""
    r: Any
    """(B,) rewards of the environment."""
    d: Any
    """(B,) 1 where the episode terminated, 0 otherwise."""
    x_next: Any
    """(B, n) observations that followed; before any reset."""


class Replay(eqx.Module):
    """A ring of the latest `capacity` transitions."""

    rows: Array
    """(capacity, 2n + m + 2)"""
    inserted: Array
    """() int32: how many transitions were ever inserted, modulo a multiple of the capacity once full."""
    n: int = eqx.field(static=True)
    m: int = eqx.field(static=True)

    @classmethod
    def create(cls, capacity: int, n: int, m: int) -> Replay:
        """Start empty."""
        return cls(jnp.zeros((capacity, 2 * n + m + 2)), jnp.zeros((), jnp.int32), n, m)

    @property
    def capacity(self) -> int:
        """How many transitions fit."""
        return self.rows.shape[0]


def pack(batch: Transitions) -> np.ndarray:
    """Lay transitions out as rows (B, 2n + m + 2)."""
    return np.concatenate(
        [batch.x, batch.u, batch.r[:, None], batch.d[:, None], batch.x_next], axis=1, dtype=np.float32
    )


def unpack(rows: Array, n: int, m: int) -> Transitions:
    """Undo `pack`."""
    return Transitions(rows[:, :n], rows[:, n : n + m], rows[:, n + m], rows[:, n + m + 1], rows[:, n + m + 2 :])


@eqx.filter_jit(donate="all")
def insert(replay: Replay, rows: Array) -> Replay:
    """Write rows (B, ...) behind the latest ones, over the oldest once the ring is full."""
    index = (replay.inserted + jnp.arange(rows.shape[0])) % replay.capacity
    count = replay.inserted + rows.shape[0]
    # Folding keeps the counter small, and at or above the capacity once the ring has filled.
    count = jnp.where(count >= 2 * replay.capacity, count - replay.capacity, count)
    return Replay(replay.rows.at[index].set(rows), count, replay.n, replay.m)


def draw(replay: Replay, key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
    """Indices of uniformly drawn transitions."""
    return jax.random.randint(key, shape, 0, jnp.minimum(replay.inserted, replay.capacity))
