"""A proposal policy that guides the planner's samples.

MPPI looks for better plans near the one it has, and from a bad one it may never find the good one next to it: a leg
that hangs at its stops stays there. A proposal u = π(x), however it was come by, is followed through the simulator
for K steps, and some of the sampled sequences are drawn around what it did. The cost alone decides what they are
worth; a proposal that is no good has no weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rhirl.planning import Planner
from rhirl.simulators import Policy, Simulator, State, follow

Proposal = Policy


@dataclass(frozen=True)
class Guide:
    """What a proposal would do from a state."""

    simulator: Simulator
    proposal: Proposal
    K: int

    @classmethod
    def of(cls, simulator: Simulator, planner: Planner, proposal: Proposal | None) -> Self | None:
        """Return the guide a planner asks for, or None where it asks for none."""
        if planner.guided == 0:
            return None
        if proposal is None:
            raise ValueError(
                f"guided={planner.guided:g} needs a proposal: pass one, such as the policy of "
                "rhirl.proposals.learn_proposal, or set guided=0"
            )
        return cls(simulator, proposal, planner.K)

    def plan(self, state: State) -> NDArray[np.float32]:
        """Follow π for K steps: v_k = π(x_k), x_{k+1} = f(x_k, v_k). Returns (K, m)."""
        V: list[NDArray[np.float32]] = []

        def remembered(x: NDArray[Any]) -> NDArray[np.float32]:
            V.append(np.array(self.proposal(x), np.float32))
            return V[-1]

        # Also where the task is lost: whether such sequences have weight is the planner's affair (`survive`).
        follow(self.simulator, state, np.empty((0, self.simulator.control_dim)), remembered, self.K, lost_too=True)
        # Where the simulation diverges, so will the rollouts that follow it there.
        return np.stack(V + V[-1:] * (self.K - len(V)))
