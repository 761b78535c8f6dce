"""What f-IRL, AIRL and GAIL share: SAC, paid by a cost that is itself being learned.

One iteration:

    the environments are stepped under the policy as it is, while
    SAC makes its updates, every batch paid anew by the cost as it is          `practise`
    the new transitions join the replay buffer
    the cost learns from demonstrations and the policy's own states            `teach`

A method is a class with pure functions for its cost: `begin`, `reward`, `teach`, `learned`. Everything random
and everything learned is in one pytree, so saving it is all there is to saving, and several runs of a method can be
learned side by side under `jax.vmap`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from rhirl.baselines.episodes import Episodes, follow
from rhirl.baselines.lesson import Lesson, lay_out
from rhirl.baselines.practice import ImitationConfig, Metrics, Teacher, practise, teach
from rhirl.costs import Cost, Normaliser
from rhirl.demos import Demonstrations
from rhirl.rl import Actor, Environments, Learner, Policy, Replay, Workers, act, to_numpy
from rhirl.rl.replay import insert, pack
from rhirl.rl.sac import init
from rhirl.rl.vector import MakeEnv


class State(NamedTuple):
    """Everything a run knows between two iterations."""

    learner: Learner
    average: Actor
    """The running average of the actor."""
    rows: Array
    """What the replay buffer holds."""
    inserted: Array
    parameters: Any
    """The method's networks and moments."""
    key: Array
    environments: dict[str, NDArray[Any]]
    episodes: Episodes
    iteration: NDArray[np.int64]


Config = TypeVar("Config", bound=ImitationConfig)


class Imitator(Teacher, Generic[Config]):
    """A policy that learns to act like demonstrations, and the cost that taught it.

    Args:
        make: Makes the environment the policy acts in, with whatever noise it has; picklable with `processes`.
        demos: Demonstrations; with controls for methods that need them.
        config: Hyper-parameters.
        seed: Of everything random.
        processes: Whether (1) or not (0) the environments are stepped in a process of their own.
    """

    needs_controls: ClassVar[bool] = False
    kept: ClassVar[int] = 0
    """How many finished episodes the cost learns from."""

    def __init__(
        self, make: MakeEnv, demos: Demonstrations, config: Config, *, seed: int = 0, processes: int = 0
    ) -> None:
        self.config, self.seed = config, seed
        sac, T = replace(config.sac, seed=seed), demos.horizon
        self.envs: Environments | Workers = (
            Workers(make, sac.envs, T, seed, processes=1) if processes else Environments(make, sac.envs, T, seed)
        )
        demos.check_fits((self.envs.n,))
        self.experts = lay_out(demos, self.envs.m, type(self).needs_controls)
        self.normalise = Normaliser.of(demos.states(), floor=config.floor, limit=config.limit)
        self.learner = init(sac, self.envs.n, self.envs.m)
        # The learner's own arrays are donated to its updates.
        self.average: Actor = jax.tree.map(jnp.copy, self.learner.actor)
        self.replay = Replay.create(sac.capacity, self.envs.n, self.envs.m)
        key, self.key = jax.random.split(jax.random.key(seed))
        self.parameters = self.begin(config, key, self.normalise)
        self.episodes = Episodes.begin(self._first(), T, type(self).kept)
        self.iteration = 0

    @property
    def exploring(self) -> bool:
        """Whether controls are still drawn at random, and nothing is learned."""
        return self.steps < self.config.sac.random_steps

    @property
    def steps(self) -> int:
        """Environment steps made so far."""
        return self.iteration * self.config.iteration_steps

    def learn(self, iterations: int | None = None, callback: Callable[[Self, Metrics], None] | None = None) -> Self:
        """Iterate until `iterations` (all of the configuration's by default) are done."""
        while self.iteration < (self.config.iterations if iterations is None else iterations):
            metrics = self.step()
            if callback is not None:
                callback(self, metrics)
        return self

    def step(self) -> Metrics:
        """Make one iteration."""
        exploring = self.exploring
        self.ask(None if exploring else to_numpy(self.learner.actor))
        metrics: Metrics = {}
        if not exploring:
            self.learner, self.average, metrics = practise(
                type(self), self.config, self.learner, self.average, self.replay, self.parameters
            )
        self.replay = insert(self.replay, jnp.asarray(self.take()))
        if not exploring and self.iteration % self.config.every == 0:
            self.key, key = jax.random.split(self.key)
            self.parameters, learned = teach(type(self), self.config, self.parameters, self.lesson(), key)
            metrics |= learned
        return metrics

    def ask(self, actor: Actor | None) -> None:
        """Have the environments stepped under an actor, or at random."""
        self.envs.start(actor, self.config.sac.round_steps)

    def take(self) -> NDArray[np.float32]:
        """Return what the environments brought as rows of the replay buffer.

        The environment's reward is nobody's business here. Its place says how many steps `x_next` stands for.
        """
        transitions = self.envs.finish().transitions
        self.episodes, standing = follow(self.episodes, transitions)
        self.iteration += 1
        return pack(transitions._replace(r=standing))

    def lesson(self) -> Lesson:
        """Lay out what the cost may learn from now."""
        available = min(int(self.episodes.total), len(self.episodes.finished))
        finished = jnp.asarray(self.episodes.finished)
        return Lesson(self.experts, self.replay, self.learner.actor, finished, jnp.asarray(available))

    @property
    def learned_cost(self) -> Cost:
        """The cost as it is now: a callable that can be saved, planned with, or used as a reward −g."""
        return self.learned(self.parameters)

    def cost(self, x: ArrayLike) -> Array:
        """Return g(x) for any batch of observations (..., n)."""
        return self.learned_cost(jnp.asarray(x))

    def policy(self, **metadata: str) -> Policy:
        """Take the policy out."""
        return Policy(to_numpy(self.average), metadata)

    def act(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Return the control u (m,) the policy commands at observation x (n,)."""
        return act(to_numpy(self.average), np.asarray(x, np.float32)[None])[0]

    @property
    def state(self) -> State:
        """Everything there is to save; `restore` goes on from it exactly."""
        filled = min(int(self.replay.inserted), self.replay.capacity)
        return State(
            self.learner,
            self.average,
            self.replay.rows[:filled],
            self.replay.inserted,
            self.parameters,
            self.key,
            self.envs.state(),
            self.episodes,
            np.asarray(self.iteration, np.int64),
        )

    def restore(self, state: State) -> None:
        """Go on from a state as it was after some `step`."""
        rows = self.replay.rows.at[: len(state.rows)].set(state.rows)
        self.replay = eqx.tree_at(lambda r: (r.rows, r.inserted), self.replay, (rows, jnp.asarray(state.inserted)))
        self.learner, self.average = state.learner, state.average
        self.parameters, self.key = state.parameters, state.key
        self.envs.restore(state.environments)
        self.episodes, self.iteration = state.episodes, int(state.iteration)

    def close(self) -> None:
        """Release the environments."""
        self.envs.close()

    def _first(self) -> NDArray[np.float32]:
        """Observations before the first step; those of a worker are not needed, `follow` sees them again."""
        if isinstance(self.envs, Environments):
            return self.envs.x
        return np.zeros((self.config.sac.envs, self.envs.n), np.float32)
