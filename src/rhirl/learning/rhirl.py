"""Receding-horizon inverse reinforcement learning: the paper's Algorithm 1.

At every control step, for each of B episodes at its state x_t:

    sample V ~ N(U, βI)                         line 6   `propose`
    roll out through the simulator                       `Simulator.rollout`
    weigh: w ∝ exp(−S/λ)                        line 7   `plan`
    θ ← θ − α ∂L/∂θ (D_t, w)                    lines 8–9 `learn`
    U ← Σ w V, smooth                           line 10  `plan`
    execute v ~ N(u_0, σ²I), the system's own noise  lines 11–12 `_execute`
    shift U, append zero                        line 13  `plan`

The simulator runs outside JAX. The rollouts of the next step need the new plan but not the new θ, so `plan` also
draws the next samples, and `learn` is left running while the simulator already works on them: the same algorithm,
with learning hidden behind simulating.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from rhirl.costs import Cost, load_cost, network_of, normaliser_of, save_cost
from rhirl.demos import Demonstrations, disturbed
from rhirl.learning.config import Config
from rhirl.learning.control_step import Metrics, learn, make_optimiser, plan, propose
from rhirl.learning.controller import Controller
from rhirl.learning.episodes import Episodes
from rhirl.learning.guide import Guide, Proposal
from rhirl.learning.objective import expert_states
from rhirl.learning.state import LearnerState
from rhirl.learning.streams import EXECUTION, PROCESS, SIMULATION, draw
from rhirl.simulators import Simulator, State


class RHIRL:
    """Learns a state cost from demonstrations that hold only states, and plans with it.

    Args:
        simulator: The black-box system; the learner plans through `rollout` and acts through `step`.
        demos: Demonstrated observations.
        config: Hyper-parameters.
        noise: Standard deviation σ of the system's own control noise. The learner never sees it; it only feels it.
        seed: Of everything random.
        proposal: The policy that guides a share of the samples, where the planner asks for one (`guided`).
    """

    def __init__(
        self,
        simulator: Simulator,
        demos: Demonstrations,
        config: Config | None = None,
        *,
        noise: float = 0.0,
        seed: int = 0,
        proposal: Proposal | None = None,
    ) -> None:
        self.simulator = simulator
        self.config = config or Config()
        self.demos = demos = demos.quorate(self.config.quorum)
        self.noise = noise
        self.seed = seed
        self.proposal = proposal
        self._guide = Guide.of(simulator, self.config.planner, proposal)
        demos.check_fits(simulator.observation_shape)
        lengths = np.full(len(demos), demos.horizon) if self.config.absorbing else demos.lengths
        self._experts = expert_states(demos.observations, lengths, self.config.planner.K)
        self._normalise = normaliser_of(demos.states(), floor=self.config.floor, limit=self.config.limit)
        self._optimiser = make_optimiser(self.config)
        self._episodes = Episodes(simulator, demos, self.config, seed)
        self.state = self._initial_state()
        self._V: Array | None = None
        self._controller: Controller | None = None

    def learn(
        self, iterations: int | None = None, callback: Callable[[RHIRL, Metrics], None] | None = None
    ) -> Self:
        """Take control steps until `iterations` (all of the configuration's by default) are done."""
        while self.state.iteration < (self.config.iterations if iterations is None else iterations):
            metrics = self.step()
            if callback is not None:
                callback(self, metrics)
        return self

    def step(self) -> Metrics:
        """Take one control step in each of the B episodes, and make one update of θ."""
        config, state = self.config, self.state
        index = int(state.iteration)
        V = self._propose(index) if self._V is None else self._V
        observations, usable, invalid = self._roll_out(V, index)
        now = state.t.astype(np.int32)
        cost = Cost(self._normalise, state.network)
        U, u, V_next, planned = plan(
            cost, state.U, V, observations, usable, now, self._experts, state.key, index, config
        )
        network, average, optimiser, metrics = learn(
            cost,
            state.average,
            state.optimiser,
            observations,
            planned,
            now,
            self._experts,
            state.key,
            index,
            self._optimiser,
            config,
        )
        controls = np.asarray(u)
        systems, t, end, episode = self._execute(controls, index)
        restarted = episode != state.episode
        if restarted.any():
            U = jnp.where(restarted[:, None, None], 0.0, U)
        # Samples drawn ahead do not know a new episode's plan.
        self._V = None if restarted.any() else V_next
        self.state = LearnerState(
            network,
            average,
            optimiser,
            U,
            state.key,
            state.iteration + 1,
            t,
            end,
            episode,
            systems,
            controls,
            state.executed + config.parallel,
            state.simulated + usable.size * config.planner.K,
            state.invalid + invalid,
        )
        self._controller = None
        return metrics

    def cost(self, x: ArrayLike) -> Array:
        """Return g(x; θ) for any batch of observations (..., n)."""
        return self.learned_cost(jnp.asarray(x))

    @property
    def learned_cost(self) -> Cost:
        """The cost as it is now: a callable that can be saved, planned with, or used as a reward −g."""
        return Cost(self._normalise, self.state.average)

    def act(self, state: State) -> NDArray[np.float32]:
        """Plan from a state of the system with the learned cost and return the next control u (m,)."""
        if self._controller is None:
            self._controller = Controller.configured(
                self.simulator, self.learned_cost, self.config, seed=self.seed, proposal=self.proposal
            )
        return self._controller.act(state)

    def save(self, path: str | Path) -> None:
        """Write the learned cost to a safetensors file."""
        save_cost(self.learned_cost, path)

    def load(self, path: str | Path) -> Self:
        """Take the cost from a file written by `save`; learning goes on from it."""
        cost = load_cost(path)
        self._normalise = cost.normalise
        optimiser = self._optimiser.init(cost.network)
        self.state = self.state._replace(network=cost.network, average=cost.network, optimiser=optimiser)
        self._controller = None
        return self

    def restore(self, state: LearnerState) -> None:
        """Continue from a state as it was after some `step`."""
        self.state = state
        self._V = None
        self._controller = None

    def _initial_state(self) -> LearnerState:
        config, B = self.config, self.config.parallel
        key_network, key = jax.random.split(jax.random.key(self.seed))
        network = network_of(key_network, self.demos.observation_shape, config.hidden)
        zero = np.asarray(0, np.int64)
        starts = [self._episodes.begin(b) for b in range(B)]
        return LearnerState(
            network=network,
            average=network,
            optimiser=self._optimiser.init(network),
            U=jnp.zeros((B, config.planner.K, self.simulator.control_dim)),
            key=key,
            iteration=zero,
            t=np.array([start.t for start in starts]),
            end=np.array([start.end for start in starts]),
            episode=np.arange(B),
            systems=tuple(start.system for start in starts),
            u=np.zeros((B, self.simulator.control_dim), np.float32),
            executed=zero,
            simulated=zero,
            invalid=zero,
        )

    def _propose(self, index: int) -> Array:
        """Draw V (B, M, K, m) from where the B episodes are."""
        guide = None if self._guide is None else np.stack([self._guide.plan(x) for x in self.state.systems])
        return propose(self.state.key, index, self.state.U, self.config.planner, guide)

    def _roll_out(self, V: Array, index: int) -> tuple[NDArray[Any], NDArray[np.bool_], int]:
        """Roll out V (B, M, K, m), M_s times each.

        Returns observations (B, M · M_s, K + 1, *n), which rollouts are plans (B, M · M_s), and how many diverged.
        """
        controls = np.asarray(V)
        if self.config.M_s > 1:
            controls = np.repeat(controls, self.config.M_s, axis=1)
        rollouts = [
            self.simulator.rollout(system, controls[b], seed=draw(self.seed, SIMULATION, index, b))
            for b, system in enumerate(self.state.systems)
        ]
        valid = np.stack([r.valid for r in rollouts])
        observations = np.stack([r.observations for r in rollouts])
        if not valid.all():
            observations[~valid] = 0  # their weight is zero, and zero times NaN would still be NaN
        usable = np.stack([r.usable(self.config.planner.survive) for r in rollouts])
        return observations, usable, int(np.count_nonzero(~valid))

    def _execute(
        self, u: NDArray[np.float32], index: int
    ) -> tuple[tuple[State, ...], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Execute v ~ N(u, σ²I) in each system, and start a new episode where one has ended."""
        systems, t = list(self.state.systems), self.state.t + 1
        end, episode = self.state.end.copy(), self.state.episode.copy()
        for b, system in enumerate(systems):
            v = u[b]
            if self.noise:
                v = disturbed(v, self.noise, np.random.default_rng(draw(self.seed, EXECUTION, index, b)))
            systems[b] = self.simulator.step(system, v, seed=draw(self.seed, PROCESS, index, b))
            if t[b] == end[b] or self.simulator.terminated(systems[b]):
                episode[b] = episode.max() + 1
                systems[b], t[b], end[b] = self._episodes.begin(int(episode[b]))
        return tuple(systems), t, end, episode
