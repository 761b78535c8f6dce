"""One Gymnasium environment as a dynamics model: put it into a state, step it, roll it out.

The simulator holds one `EnvModel`, and so does each of its worker processes; they are built from the same `Recipe`
and give the same bits. The model never has a time limit, and it draws its random numbers from the keys it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.gym_attributes import RandomGenerator, reseed
from rhirl.simulators.gym_packing import unpack
from rhirl.simulators.gym_spaces import ToAction, actions_of, observations_of
from rhirl.simulators.gym_states import Dynamics, Env, StateAccess, join_kinds, layers, without_bookkeeping
from rhirl.simulators.protocol import Rollout, State

OBSERVATION_METHODS = (
    "_get_obs",
    "_get_ob",
    "get_obs",
    "_get_observation",
    "get_observation",
    "_observation",
    "_obs",
)


class Recipe(NamedTuple):
    """Everything a process needs to build the model; `GymSimulator` explains each part."""

    make_env: Callable[[], Env]
    snapshot: Callable[[Any], Any] | None = None
    restore: Callable[[Any, Any], None] | None = None
    observe: Callable[[Any], Any] | None = None
    to_action: ToAction | None = None
    control_dim: int | None = None


class RolloutError(RuntimeError):
    """The environment raised an exception inside a rollout."""

    def __init__(self, name: str, rollout: int, step: int, cause: str) -> None:
        super().__init__(name, rollout, step, cause)
        self.name, self.rollout, self.step, self.cause = name, rollout, step, cause

    def __str__(self) -> str:
        return f"{self.name} raised {self.cause} (step {self.step} of rollout {self.rollout})"


class EnvModel:
    """An environment that can be put into any of its states."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        env = recipe.make_env()
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"make_env must return a gymnasium.Env, not {type(env).__name__}")
        if env.render_mode == "human":
            raise ValueError(
                "make_env must build the environment without render_mode='human': each copy opens a window"
            )
        self.name = env.spec.id if env.spec is not None else type(env.unwrapped).__qualname__
        self.env = without_bookkeeping(env)
        self.observation_shape, self.observation_dtype = observations_of(self.env.observation_space, self.name)
        self.to_actions, self.control_dim = actions_of(
            self.env.action_space, recipe.to_action, recipe.control_dim, self.name
        )
        self.states = StateAccess(self.env, self.name, recipe.snapshot, recipe.restore)
        self._layers = layers(self.env)
        observation, _ = self.env.reset(seed=0)
        if np.shape(observation) != self.observation_shape:
            raise ValueError(
                f"{self.name} returned an observation of shape {np.shape(observation)}, but its observation_space "
                f"says {self.observation_shape}: the two must agree"
            )
        self._first = Dynamics(*unpack(self.states.read(self.env)["dynamics"]))
        self._generators = self._find_generators()
        self.states.write(self._layers, self._first)
        # A user's restore may call reset, which makes new generators; then they are looked up before every rollout.
        self._generators_stay = [*map(id, self._find_generators())] == [*map(id, self._generators)]
        self._read_base = recipe.observe or self._find_observation()

    def reset(self, seed: int) -> State:
        """Return the state after the environment's own `reset(seed=seed)`, whatever was done with it before."""
        self.states.write(self._layers, self._first)
        observation, _ = self.env.reset(seed=seed)
        return self._state(observation, False)

    def step(self, state: State, control: NDArray[np.float32], key: NDArray[np.uint64]) -> State:
        """Execute one control (m,) with the random numbers of `key` (2,); a task that has ended stays as it is."""
        dynamics = self.dynamics(state)
        if state["terminated"]:
            return state
        self.states.write(self._layers, dynamics)
        self._reseed(key, look_up=True)
        observation, _, terminated, _, _ = self.env.step(self.to_actions(control))
        # The real system's own random numbers were not used, so they stay where they were.
        return self._state(observation, terminated) | {"random": np.array(state["random"])}

    def roll(
        self, state: State, controls: NDArray[np.float32], keys: NDArray[np.uint64], first: int = 0
    ) -> Rollout:
        """Roll V (M, K, m) out, each sequence with the random numbers of its `keys` (M, 2).

        Where these are part of a larger batch, `first` is the number of the first one: an error tells it.
        """
        dynamics, start = self.dynamics(state), np.asarray(state["observation"])
        usable = np.asarray(np.isfinite(controls).all(axis=2))
        actions = self.to_actions(np.nan_to_num(controls))
        M, K, _ = controls.shape
        observations = np.empty((M, K + 1, *self.observation_shape), self.observation_dtype)
        observations[:] = start
        valid = np.full(M, np.isfinite(start).all())
        if state["terminated"] or not valid.all():
            return Rollout(observations, valid, np.full(M, bool(state["terminated"])))
        ended = np.zeros(M, np.bool_)
        for i in range(M):
            self.states.write(self._layers, dynamics)
            self._reseed(keys[i], look_up=i == 0 or not self._generators_stay)
            valid[i], ended[i] = self._roll_one(first + i, actions[i], usable[i], observations[i])
        return Rollout(observations, valid, ended)

    def _roll_one(self, number: int, actions: Any, usable: NDArray[np.bool_], x: NDArray[Any]) -> tuple[bool, bool]:
        """Step through one sequence, fill x (K + 1, *n), and tell whether the rollout is valid and ends the task.

        After the end of the task, and from a step that cannot be used (its control or its observation is not
        finite), the last observation is repeated.
        """
        step = self.env.step
        # A model that blows up is masked here, not warned about once per step.
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(len(x) - 1):
                if not usable[k]:
                    x[k + 1 :] = x[k]
                    return False, False
                try:
                    x[k + 1], _, terminated, _, _ = step(actions[k])
                except Exception as error:
                    raise RolloutError(self.name, number, k + 1, f"{type(error).__name__}: {error}") from error
                if not _is_finite(x[k + 1]):
                    x[k + 1 :] = x[k]
                    return False, False
                if terminated:
                    x[k + 2 :] = x[k + 1]
                    return True, True
        return True, False

    def snapshot(self, env: Env) -> State:
        """Return the state of a running environment, which is only read."""
        state = self.states.read(env)
        self.states.write(self._layers, Dynamics(*unpack(state["dynamics"])))
        try:
            x = self.as_observation(self._observation())
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise ValueError(f"this {self.name} shows no observation ({cause}); has it been reset?") from error
        return state | {"observation": x, "terminated": np.array(False)}

    def restore(self, env: Env, state: State) -> None:
        """Put a running environment into a state, its random generators too."""
        self.states.write(self.states.layers(env), self.dynamics(state))
        self.states.write_random(env, state)

    def dynamics(self, state: State) -> Dynamics:
        """Unpack the dynamics of a state, or say why it is no state of this environment."""
        dynamics = self.states.dynamics(state)
        if np.shape(state["observation"]) != self.observation_shape:
            raise ValueError(
                f"observations of {self.name} have shape {self.observation_shape}, "
                f"but the one in this state has {np.shape(state['observation'])}"
            )
        return dynamics

    def _observation(self) -> Any:
        """Return what the environment shows in the state it is in now, through its wrappers."""
        *outer, base = self._layers
        x = self._read_base(base)
        for layer in reversed(outer):
            if isinstance(layer, gymnasium.ObservationWrapper):
                x = layer.observation(x)
        return x

    def _state(self, observation: Any, terminated: bool) -> dict[str, NDArray[Any]]:
        x = self.as_observation(observation)
        return self.states.read(self.env) | {"observation": x, "terminated": np.array(bool(terminated))}

    def as_observation(self, observation: Any) -> NDArray[Any]:
        """Return an observation of the environment in the simulator's own type."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array(observation).astype(self.observation_dtype)

    def _reseed(self, key: NDArray[np.uint64], look_up: bool) -> None:
        """Give every random generator of the model the stream of one rollout."""
        if look_up:
            self._generators = self._find_generators()
        for index, generator in enumerate(self._generators):
            reseed(generator, key, index)

    def _find_generators(self) -> list[RandomGenerator]:
        # Gymnasium makes a generator from entropy at its first use: that must not happen inside a rollout.
        _ = self.env.unwrapped.np_random
        generators = self.states.survey(self.env).generators
        return [generators[path] for path in sorted(generators)]

    def _find_observation(self) -> Callable[[Any], Any]:
        """Find a method or an attribute of the environment that holds the observation, by trying for some steps."""
        base = self.env.unwrapped
        readers: list[Callable[[Any], Any]] = [methodcaller(n) for n in OBSERVATION_METHODS if hasattr(base, n)]
        readers += [attrgetter(name) for name in vars(base)]
        for v in np.random.default_rng(0).uniform(-1, 1, (12, self.control_dim)).astype(np.float32):
            observation, _, terminated, _, _ = self.env.step(self.to_actions(v))
            readers = [reader for reader in readers if self._reads(reader, self.as_observation(observation))]
            if terminated:
                self.env.reset(seed=0)
        if not readers:
            missed = self.states.by_attributes and self.states.missed(self.env)
            also = f" Pass snapshot= and restore= too: {missed} cannot be read from outside." if missed else ""
            raise ValueError(
                f"no method or attribute of {self.name} gives the observation that {join_kinds(self.states.kinds)} "
                f"returns. Pass observe=, a function from the unwrapped environment to its observation.{also} "
                "Wrappers whose observation depends on the past (frame stacks, running means) cannot be used"
            )
        return readers[0]

    def _reads(self, reader: Callable[[Any], Any], observation: NDArray[Any]) -> bool:
        self._read_base = reader
        try:
            return self.as_observation(self._observation()).tobytes() == observation.tobytes()
        except Exception:
            return False


def _is_finite(x: NDArray[Any]) -> bool:
    """Tell whether all of x is finite; the scalar product is by far the quicker test, but it may overflow."""
    return math.isfinite(np.vdot(x, x)) or bool(np.isfinite(x).all())
