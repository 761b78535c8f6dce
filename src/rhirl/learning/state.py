"""Everything a learner knows, in one pytree: save its leaves and the run continues bit for bit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jax import Array
from numpy.typing import NDArray

from rhirl.costs import Network
from rhirl.simulators import State


class LearnerState(NamedTuple):
    """The state of RHIRL between two control steps. `B` episodes run side by side."""

    network: Network
    """θ, the parameters of the cost."""
    average: Network
    """The running average of θ."""
    optimiser: Any
    """Adam's moments and step count."""
    U: Array
    """(B, K, m) nominal plan of each episode."""
    key: Array
    """The random key; step i uses `fold_in(key, i)`, so a counter is all that changes."""
    iteration: NDArray[np.int64]
    """() control steps taken so far, which is also the number of updates."""
    t: NDArray[np.int64]
    """(B,) time within each episode."""
    end: NDArray[np.int64]
    """(B,) time at which each episode is over, unless the task ends it first."""
    episode: NDArray[np.int64]
    """(B,) index of each running episode; its initial state is drawn from it."""
    systems: tuple[State, ...]
    """B states of the system the learner acts in."""
    u: NDArray[np.float32]
    """(B, m) the controls planned last, as they were before the system's own noise."""
    executed: NDArray[np.int64]
    """() steps executed on the system."""
    simulated: NDArray[np.int64]
    """() steps the planner simulated."""
    invalid: NDArray[np.int64]
    """() rollouts that diverged and were given infinite cost."""
