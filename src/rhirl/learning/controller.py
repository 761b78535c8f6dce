"""Plan with a cost: the receding-horizon controller that a learned cost becomes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from rhirl.learning.beyond import Beyond, cheapest
from rhirl.learning.config import Config
from rhirl.learning.danger import Danger, WaryCost
from rhirl.learning.guide import Guide, Proposal
from rhirl.learning.objective import CostFunction, expected_cost
from rhirl.learning.resign import Resignation
from rhirl.planning import Planner, sample, smooth, update, warm_start, weigh
from rhirl.simulators import Simulator, State, exactly


class Controller:
    """MPPI on a fixed cost g(x): give it the system's state, get the next control.

    Args:
        simulator: What the planner rolls out.
        cost: Any JAX function g: (..., n) → (...).
        planner: How to sample and weigh.
        M_s: Rollouts per sequence, for simulators with noise of their own.
        seed: Of the planner's samples.
        proposal: The policy that guides a share of the samples, where the planner asks for one.
        beyond: Steps the proposal must be able to go on for behind a plan, or another one is followed; 0 asks not.
        astray: Whether to end such a look where the cost says that no expert goes is as bad as to lose the task.
        resignation: What tells where to keep still, because all is lost.
    """

    def __init__(
        self,
        simulator: Simulator,
        cost: CostFunction,
        planner: Planner,
        *,
        M_s: int = 1,
        seed: int = 0,
        proposal: Proposal | None = None,
        beyond: int = 0,
        astray: bool = False,
        resignation: Resignation | None = None,
    ) -> None:
        self.simulator = simulator
        # A plain function is no pytree; a partial of it is one, and can enter compiled code like a `Cost`.
        partial_of: Any = jax.tree_util.Partial
        self.cost: CostFunction = partial_of(cost) if jax.tree_util.all_leaves([cost]) else cost
        self._resignation = resignation
        self._guide = Guide.of(simulator, planner, proposal)
        self._beyond: Beyond | None = None
        if beyond:
            if self._guide is None:
                raise ValueError(f"beyond={beyond} follows a proposal behind the plan: set guided > 0, or beyond=0")
            mean_cost = partial(_mean_cost, self.cost) if astray else None
            self._beyond = Beyond(simulator, self._guide.proposal, planner.K + beyond, mean_cost)
        self.planner = planner
        self.M_s = M_s
        self.reset(seed)

    @classmethod
    def configured(
        cls,
        simulator: Simulator,
        cost: CostFunction,
        config: Config,
        *,
        seed: int,
        proposal: Proposal | None,
        danger: Danger | None = None,
    ) -> Self:
        """Act as a configuration says.

        Where the danger of states is known, it is minded in place of a look, by a planner of its own: amid noise
        there is no staying as near to the proposal as `deploy` may ask for.
        """
        planner, beyond, resignation = config.acting, config.beyond, None
        if danger is not None:
            if math.isfinite(danger.farthest):
                resignation = Resignation(partial(_mean_cost, cost), danger.farthest, config.beyond)
            cost, planner, beyond = WaryCost(cost, danger, config.wary), config.minding, 0
            simulator = exactly(simulator) if config.exact else simulator
        return cls(
            simulator,
            cost,
            planner,
            M_s=config.M_s,
            seed=seed,
            proposal=proposal,
            beyond=beyond,
            astray=config.astray,
            resignation=resignation,
        )

    def reset(self, seed: int = 0) -> None:
        """Forget the plan: U = 0."""
        self._seed = seed
        self._steps = 0
        self._U = jnp.zeros((self.planner.K, self.simulator.control_dim))
        # What is left of the plan that was followed last, behind which the proposal goes on; none as yet.
        self._rest = np.empty((0, self.simulator.control_dim), np.float32)
        if self._resignation is not None:
            self._resignation.reset()

    def act(self, state: State) -> NDArray[np.float32]:
        """Plan from a state of the simulator and return the first control u (m,) in [-1, 1]."""
        if self._resignation is not None and self._resignation(self.simulator.observe(state)):
            self._U = jnp.zeros_like(self._U)
            self._steps += 1
            return np.zeros(self.simulator.control_dim, np.float32)
        guide = None if self._guide is None else self._guide.plan(state)
        V = _propose(jax.random.key(self._seed), self._steps, self._U, self.planner, guide)
        controls = np.repeat(np.asarray(V), self.M_s, axis=0)
        rollout = self.simulator.rollout(state, controls, seed=self._steps)
        usable = rollout.usable(self.planner.survive)
        U, S = _plan(self.cost, self._U, V, rollout.observations, usable, self.planner, self.M_s)
        if self._beyond is not None and guide is not None:
            plans = np.asarray(U), guide, self._rest, *cheapest(np.asarray(V), np.asarray(S))
            followed = self._beyond.choose(state, plans)
            self._rest = followed[1:]
            U = jnp.asarray(np.concatenate([followed, guide[len(followed) :]]))
        self._U = warm_start(U)
        self._steps += 1
        return np.asarray(U[0])


@jax.jit
def _mean_cost(cost: Any, x: Array) -> Array:
    return cost(x).mean()


@partial(jax.jit, static_argnames="planner")
def _propose(key: Array, step: Array, U: Array, planner: Planner, guide: Array | None) -> Array:
    return sample(jax.random.fold_in(key, step), U, planner, guide)


@partial(jax.jit, static_argnames=("planner", "M_s"))
def _plan(
    cost: Any, U: Array, V: Array, observations: Array, valid: Array, planner: Planner, M_s: int
) -> tuple[Array, Array]:
    S = expected_cost(jnp.where(valid, cost(observations).sum(axis=-1), jnp.inf), M_s)
    weighing = weigh(S, U, V, planner)
    return smooth(update(weighing.w, V, U, S), planner), S
