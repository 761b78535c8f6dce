"""What a cost may learn from: the demonstrations, and what the policy has done so far."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from rhirl.demos import DemonstrationError, Demonstrations
from rhirl.rl import Actor, Replay, Transitions


class Experts(NamedTuple):
    """The demonstrations as a method sees them: N episodes of T steps, and all their transitions in a row."""

    episodes: Array
    """(N, T + 1, n) states; after the end of an episode its last state is repeated."""
    lengths: Array
    """(N,)"""
    transitions: Transitions
    """Σ L of them, for methods that need controls; the reward column holds zeros."""
    steps: Array
    """() Σ L"""


class Lesson(NamedTuple):
    """What the cost may learn from."""

    experts: Experts
    replay: Replay
    actor: Actor
    finished: Array
    """(kept, T + 1, n) the policy's latest finished episodes."""
    available: Array
    """() how many of those there are."""


def lay_out(demos: Demonstrations, m: int, needs_controls: bool) -> Experts:
    """Lay demonstrations out; without controls, transitions have none."""
    if needs_controls and demos.controls is None:
        raise DemonstrationError(
            f"these demonstrations of {demos.meta.task} hold no controls, and this method learns from controls: "
            "use rhirl, firl or gail, which need states only"
        )
    x, L, T = demos.observations, demos.lengths, demos.horizon
    states = x.copy()
    for episode, length in zip(states, L, strict=True):
        episode[length:] = episode[length]
    controls = np.zeros((len(x), T, m), np.float32) if demos.controls is None else demos.controls
    steps = [(x[i, :k], controls[i, :k], np.arange(1, k + 1) == k, x[i, 1 : k + 1]) for i, k in enumerate(L)]
    before, u, last, after = (np.concatenate(column) for column in zip(*steps, strict=True))
    # An episode that was cut at T has not terminated.
    early = np.concatenate([np.full(k, k < T) for k in L])
    d = (last & early).astype(np.float32)
    transitions = Transitions(*map(jnp.asarray, (before, u, np.zeros_like(d), d, after)))
    return Experts(jnp.asarray(states), jnp.asarray(L), transitions, jnp.asarray(len(d)))
