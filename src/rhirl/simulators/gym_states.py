"""The state of a Gymnasium environment: read it from a running one, write it into another.

A state is a dictionary of arrays:

    dynamics     (·,) uint8    everything the environment and its wrappers need to go on, packed
    random       (·,) uint8    where its random generators stand, packed
    observation  (*n,)         x
    terminated   ()   bool     whether the step that led here ended the task

Wrappers that only keep books (time limits, call order, statistics, videos) are no part of it: an environment with
them and one without share their states. Wrappers that change observations or actions may have a state of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
from gymnasium import wrappers
from numpy.typing import NDArray

from rhirl.simulators.gym_attributes import (
    Survey,
    random_state,
    read_attributes,
    renew,
    set_random_state,
    write_attributes,
)
from rhirl.simulators.gym_packing import NotPlainError, pack, unpack
from rhirl.simulators.protocol import State

Env = gymnasium.Env[Any, Any]
PARTS = frozenset({"dynamics", "random", "observation", "terminated"})
BOOKKEEPING = (
    wrappers.TimeLimit,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.HumanRendering,
)


class Dynamics(NamedTuple):
    """What an environment needs to go on, as plain values."""

    kinds: list[str]
    """The classes of the wrappers from the outside in, and of the environment."""
    wrappers: list[Any]
    base: Any
    """The environment's attributes, or what the user's `snapshot` returned."""


def layers(env: Env) -> list[Env]:
    """Return an environment's wrappers from the outside in, less those that keep books, then the environment."""
    return [layer for layer in _all_layers(env) if not isinstance(layer, BOOKKEEPING)]


def without_bookkeeping(env: Env) -> Env:
    """Take the wrappers that keep books off an environment, which is changed."""
    if isinstance(env, BOOKKEEPING):
        return without_bookkeeping(env.env)
    if isinstance(env, gymnasium.Wrapper):
        env.env = without_bookkeeping(env.env)
    return env


class StateAccess:
    """Reads and writes the states of all environments that are built like `env`."""

    def __init__(
        self,
        env: Env,
        name: str,
        snapshot: Callable[[Any], Any] | None = None,
        restore: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self.name = name
        self.kinds = _kinds(layers(env))
        self._snapshot, self._restore = snapshot, restore

    def survey(self, env: Env) -> Survey:
        """Look through the attributes of an environment: its random generators, and what cannot be read."""
        return self._read(self.layers(env))[1]

    @property
    def by_attributes(self) -> bool:
        """Whether the environment's attributes are taken for its state, for want of a function that reads it."""
        return self._snapshot is None

    def missed(self, env: Env) -> str:
        """Name the attributes that hold something which cannot be read."""
        return ", ".join(dict.fromkeys(re.split(r"[.\[]", path)[0] for path in self.survey(env).missed))

    def read(self, env: Env) -> dict[str, NDArray[Any]]:
        """Return the dynamics and the random generators of an environment, packed; the environment is only read."""
        dynamics, survey = self._read(self.layers(env))
        try:
            packed = pack(tuple(dynamics))
        except NotPlainError as error:
            raise ValueError(
                f"the snapshot of {self.name} cannot be stored: {error}; "
                "it may hold numbers, strings, arrays, and lists, tuples and dictionaries of them"
            ) from error
        return {"dynamics": packed, "random": pack({p: random_state(g) for p, g in survey.generators.items()})}

    def write(self, own: list[Env], dynamics: Dynamics) -> None:
        """Put the layers of an environment into unpacked dynamics; its random generators stay where they are."""
        *outer, base = own
        for layer, attributes in zip(outer, dynamics.wrappers, strict=True):
            write_attributes(layer, attributes)
        if self._restore is not None:
            self._restore(base, renew(dynamics.base))
        else:
            write_attributes(base, dynamics.base)

    def write_random(self, env: Env, state: State) -> None:
        """Put the random generators of an environment where those of a state stand."""
        standing = unpack(state["random"])
        if not standing:
            return
        # Gymnasium makes an environment's generator at its first use; here it has to be there.
        _ = env.unwrapped.np_random
        generators = self.survey(env).generators
        for path, where in standing.items():
            if path not in generators:
                raise ValueError(f"the state holds a random generator {path}, but the environment has none there")
            set_random_state(generators[path], where)

    def dynamics(self, state: State) -> Dynamics:
        """Unpack the dynamics of a state, or say why it is no state of this environment."""
        if not isinstance(state, dict) or state.keys() != PARTS:
            raise ValueError(f"this is not a state of {self.name}: take states from reset, step or snapshot")
        values = unpack(state["dynamics"])
        if not isinstance(values, tuple) or len(values) != len(Dynamics._fields):
            raise ValueError(f"this is not a state of {self.name}: take states from reset, step or snapshot")
        dynamics = Dynamics(*values)
        if dynamics.kinds != self.kinds:
            raise ValueError(f"this is a state of {join_kinds(dynamics.kinds)}, not of {join_kinds(self.kinds)}")
        return dynamics

    def layers(self, env: Env) -> list[Env]:
        """Return the layers of an environment, or say that it is built in another way."""
        found = layers(env)
        if _kinds(found) != self.kinds:
            raise ValueError(
                f"this simulator is of {join_kinds(self.kinds)}, but the environment is {join_kinds(_kinds(found))}"
            )
        return found

    def _read(self, own: list[Env]) -> tuple[Dynamics, Survey]:
        *outer, base = own
        survey = Survey(seen={id(layer) for layer in _all_layers(own[0])})
        around = [read_attributes(layer, survey, f"wrapper {i}") for i, layer in enumerate(outer)]
        within: Any = read_attributes(base, survey)
        if self._snapshot is not None:
            within = self._snapshot(base)
        return Dynamics(self.kinds, around, within), survey


def _all_layers(env: Env) -> list[Env]:
    found = [env]
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        found.append(env)
    return found


def _kinds(own: list[Env]) -> list[str]:
    return [type(layer).__qualname__ for layer in own]


def join_kinds(kinds: list[str]) -> str:
    """Write `TimeLimit of CartPoleEnv` for a wrapper and what it wraps."""
    return " of ".join(map(str, kinds))
