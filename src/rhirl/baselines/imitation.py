"""What f-IRL, AIRL and GAIL share: SAC, paid by a cost that is itself being learned.

One iteration:

    the environments are stepped under the policy as it is, while
    SAC makes its updates, every batch paid anew by the cost as it is          `practise`
    the new transitions join the replay buffer
    the cost learns from demonstrations and the policy's own states            `Imitator.teach`

A method is a class with pure functions for its cost: `begin`, `reward`, `teach`, `learned`. Everything random
and everything learned is in one pytree, so saving it is all there is to saving, and several runs of a method can be
learned side by side under `jax.vmap`.

An episode that terminates stays where it is: with `absorbing`, the state it ended in is paid for ever after,
r(x') γ/(1 − γ) in all. Without it, ending an episode is worth zero, which a reward of one sign reads as "live" or
as "die" for no reason the demonstrations give.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import ArrayLike, NDArray

from rhirl.baselines.episodes import Episodes, follow
from rhirl.costs import Cost, Normaliser
from rhirl.demos import DemonstrationError, Demonstrations
from rhirl.rl import Actor, Environments, Learner, Policy, Replay, SACConfig, Transitions, Workers, act, to_numpy
from rhirl.rl.replay import draw, insert, pack, unpack
from rhirl.rl.sac import init, update
from rhirl.rl.vector import MakeEnv

Metrics = dict[str, Array]


@dataclass(frozen=True)
class ImitationConfig:
    """How a method learns its cost, and the SAC inside."""

    sac: SACConfig = field(default_factory=SACConfig)
    """The policy's learner; its seed is the run's."""
    steps: int = 300_000
    """Environment steps to learn for, every one counted."""
    hidden: tuple[int, ...] = (64, 64)
    """Hidden layers of the cost network."""
    lr: float = 3e-4
    """Learning rate of the cost."""
    weight_decay: float = 1e-4
    """L2 penalty on the cost's parameters, added to the gradient before Adam."""
    batch: int = 256
    """States of each side per update of a discriminator."""
    updates: int = 64
    """Updates of a discriminator per lesson."""
    every: int = 1
    """Iterations between two lessons of the cost."""
    absorbing: bool = True
    """Whether the state in which an episode terminates counts for all the time that was left."""
    average: float = 0.98
    """Decay per iteration of the running average of the actor, which is the learned policy; 0 keeps the last."""
    floor: float = 1e-2
    """Smallest deviation used to normalise a coordinate of the observation."""
    limit: float = 5.0
    """Normalised observations are clipped to ± this."""

    @property
    def iteration_steps(self) -> int:
        """Environment steps of one iteration."""
        return self.sac.envs * self.sac.round_steps

    @property
    def iterations(self) -> int:
        """Iterations that make up the steps."""
        return -(-self.steps // self.iteration_steps)


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


class Imitator(ABC, Generic[Config]):
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
        self.experts = _experts(demos, self.envs.m, type(self).needs_controls)
        self.normalise = Normaliser.of(demos.states(), floor=config.floor, limit=config.limit)
        self.learner = init(sac, self.envs.n, self.envs.m)
        # The learner's own arrays are donated to its updates.
        self.average: Actor = jax.tree.map(jnp.copy, self.learner.actor)
        self.replay = Replay.create(sac.capacity, self.envs.n, self.envs.m)
        key, self.key = jax.random.split(jax.random.key(seed))
        self.parameters = self.begin(config, key, self.normalise)
        self.episodes = Episodes.begin(self._first(), T, type(self).kept)
        self.iteration = 0

    @staticmethod
    @abstractmethod
    def begin(config: Any, key: Array, normalise: Normaliser) -> Any:
        """Draw the method's networks, with the moments of their optimisers."""

    @staticmethod
    @abstractmethod
    def reward(config: Any, parameters: Any, batch: Transitions) -> Array:
        """Pay a batch: (B,)."""

    @staticmethod
    @abstractmethod
    def teach(config: Any, parameters: Any, lesson: Lesson, key: Array) -> tuple[Any, Metrics]:
        """Let the cost learn for one iteration."""

    @staticmethod
    @abstractmethod
    def learned(parameters: Any) -> Cost:
        """Return the cost g."""

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


@partial(jax.jit, static_argnames=("method", "config"), donate_argnames=("learner", "average"))
def practise(
    method: type[Imitator[Any]], config: Any, learner: Learner, average: Actor, replay: Replay, parameters: Any
) -> tuple[Learner, Actor, Metrics]:
    """Make an iteration's updates of SAC on batches paid by the method's cost; metrics are their means."""
    count = config.sac.updates_per_round
    key, k_index, k_noise = jax.random.split(learner.key, 3)
    index = draw(replay, k_index, (count, config.sac.batch))
    noise = jax.random.normal(k_noise, (count, 2, config.sac.batch, replay.m))

    def one(learner: Learner, drawn: tuple[Array, Array]) -> tuple[Learner, Metrics]:
        batch = unpack(replay.rows[drawn[0]], replay.n, replay.m)
        paid = method.reward(config, parameters, batch)
        learner, metrics = update(config.sac, learner, batch._replace(r=paid), drawn[1])
        return learner, {**metrics, "reward": paid.mean()}

    learner, metrics = jax.lax.scan(one, eqx.tree_at(lambda s: s.key, learner, key), (index, noise))
    average = optax.incremental_update(learner.actor, average, 1.0 - config.average)
    return learner, average, jax.tree.map(jnp.mean, metrics)


@partial(jax.jit, static_argnames=("method", "config"))
def teach(
    method: type[Imitator[Any]], config: Any, parameters: Any, lesson: Lesson, key: Array
) -> tuple[Any, Metrics]:
    """Let the cost learn for one iteration, compiled."""
    return method.teach(config, parameters, lesson, key)


def stationary(config: ImitationConfig, pay: Callable[[Array], Array], batch: Transitions) -> Array:
    """Pay r(x), and for a state in which the episode terminated all that it would be paid from then on."""
    paid = pay(batch.x)
    if config.absorbing:
        gamma = config.sac.gamma
        paid = paid + batch.d * pay(batch.x_next) * gamma / (1.0 - gamma)
    return paid


def _experts(demos: Demonstrations, m: int, needs_controls: bool) -> Experts:
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
