"""Whole episodes out of a stream of transitions, for what only a whole episode can tell.

`T` is the length of the task, `n` the size of an observation. An episode that ends early stays where it ended: its
last state counts for all the time that was left. A state x₁ … x_L therefore stands for

    1                 step, if the episode goes on from there or time is up,
    T + 1 − L         steps, if the episode terminated there after L steps,

and the marginal of a policy that falls is mostly the state it lies in, as it should be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhirl.rl import Transitions


class Episodes(NamedTuple):
    """The running episodes of E environments, and the latest finished ones."""

    running: NDArray[np.float32]
    """(E, T + 1, n) states so far."""
    ages: NDArray[np.int64]
    """(E,) steps so far."""
    finished: NDArray[np.float32]
    """(kept, T + 1, n) a ring; after the end of an episode its last state is repeated."""
    total: NDArray[np.int64]
    """() episodes finished ever."""

    @classmethod
    def begin(cls, x: NDArray[np.float32], T: int, kept: int) -> Episodes:
        """Start from the first observations x (E, n)."""
        running = np.zeros((len(x), T + 1, x.shape[1]), np.float32)
        running[:, 0] = x
        ages = np.zeros(len(x), np.int64)
        return cls(running, ages, np.zeros((kept, *running.shape[1:]), np.float32), np.asarray(0, np.int64))


def follow(episodes: Episodes, transitions: Transitions) -> tuple[Episodes, NDArray[np.float32]]:
    """Take in steps × E transitions, step by step; return how many steps each `x_next` stands for."""
    running, finished = episodes.running.copy(), episodes.finished.copy()
    ages, count = episodes.ages.copy(), int(episodes.total)
    E, T = len(ages), running.shape[1] - 1
    everybody = np.arange(E)
    standing = np.ones(len(transitions.d), np.float32)
    for start in range(0, len(transitions.d), E):
        rows = slice(start, start + E)
        running[everybody, ages] = transitions.x[rows]
        ages += 1
        running[everybody, ages] = transitions.x_next[rows]
        fell = transitions.d[rows] > 0
        standing[rows][fell] = T + 1 - ages[fell]
        for i in np.flatnonzero(fell | (ages >= T)):
            if len(finished):
                finished[count % len(finished)] = running[i]
                finished[count % len(finished), ages[i] :] = running[i, ages[i]]
            count += 1
            ages[i] = 0
    return Episodes(running, ages, finished, np.asarray(count, np.int64)), standing
