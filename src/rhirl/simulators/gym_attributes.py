"""Read the state of any Python object from its attributes, and write it back.

Most environments written in Python keep everything they need in plain attributes: numbers, arrays, lists of them,
and small objects that hold more of the same. Reading these is a snapshot; writing them into another instance of
the same class is a restore. What cannot be read this way (a physics engine in C, an open window) is left alone and
named in `Survey.missed`; whether it mattered is for the exactness check to find out.

Random generators are kept apart from the rest, because a planner must not foresee the noise of the real system:
a rollout restores the attributes and draws its own random numbers.
"""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.gym_packing import ARRAY_KINDS, ATOMS, Attributes

RandomGenerator = np.random.Generator | np.random.RandomState | random.Random
CONTAINERS = frozenset({list, tuple, set, dict, deque})
CONSTANTS = (gymnasium.Space, FunctionType, MethodType, BuiltinFunctionType, ModuleType, type, partial)
NOT_STATE = frozenset({"render_mode", "metadata", "spec", "_cached_spec", "_saved_kwargs", "_np_random_seed"})
MISSED = object()


@dataclasses.dataclass
class Survey:
    """What was met while reading: objects already read, random generators, and values that could not be read."""

    seen: set[int] = dataclasses.field(default_factory=set)
    generators: dict[str, RandomGenerator] = dataclasses.field(default_factory=dict)
    missed: dict[str, str] = dataclasses.field(default_factory=dict)


def read_attributes(owner: object, survey: Survey, path: str = "") -> Attributes:
    """Return the plain attributes of an object (not copied), and note the rest in `survey`."""
    survey.seen.add(id(owner))
    values = {}
    for name, value in vars(owner).items():
        if name not in NOT_STATE:
            plain = _read(value, survey, f"{path}.{name}" if path else name)
            if plain is not MISSED:
                values[name] = plain
    return Attributes(type(owner).__qualname__, values)


def write_attributes(owner: object, attributes: Attributes) -> None:
    """Make the plain attributes of an object equal to `attributes`; it gets copies of all that can change."""
    current = vars(owner)
    for name, value in attributes.values.items():
        # None may stand for a window that was not open when the state was read: one that is open now stays.
        if value is None and current.get(name) is not None and _read(current[name], Survey(), "") is MISSED:
            continue
        current[name] = renew(value, current.get(name))
    # What the environment made only after the snapshot has to go, or the restored state would not be that state.
    for name in current.keys() - attributes.values.keys() - NOT_STATE:
        if _is_data(current[name]):
            del current[name]


def renew(value: Any, current: Any = None) -> Any:
    """Copy plain values; the attributes of an object are written into the object that stands there now."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is np.ndarray:
        return value.copy()
    if kind is Attributes:
        if type(current).__qualname__ != value.kind:
            raise ValueError(
                f"the state holds a {value.kind} where the environment has {type(current).__qualname__}"
            )
        # An object may be known under other names too, so it is written in place; a value others share is replaced.
        target = object.__new__(type(current)) if _is_frozen(type(current)) else current
        write_attributes(target, value)
        return target
    if kind is dict:
        before = current if type(current) is dict else {}
        return {key: renew(item, before.get(key)) for key, item in value.items()}
    if kind in CONTAINERS:
        olds = list(current) if type(current) in CONTAINERS else []
        olds += [None] * (len(value) - len(olds))
        items = [renew(item, old) for item, old in zip(value, olds, strict=False)]
        return deque(items, value.maxlen) if kind is deque else kind(items)
    return value


def random_state(generator: RandomGenerator) -> Any:
    """Return where a random generator stands, as plain values."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state(legacy=False)


def set_random_state(generator: RandomGenerator, state: Any) -> None:
    """Put a random generator where `random_state` found it, in place: others may hold it too."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


def reseed(generator: RandomGenerator, key: NDArray[np.uint64], index: int) -> None:
    """Start the `index`-th generator of an environment on the random stream of one rollout, named by `key` (2,)."""
    high, low = int(key[0]), int(key[1])
    if isinstance(generator, random.Random):
        generator.seed(((high << 64) | low) + index)
    elif isinstance(generator, np.random.RandomState):
        generator.seed(np.array([high, low, index], np.uint64).view(np.uint32))
    elif isinstance(generator.bit_generator, np.random.PCG64):
        # The generator of Gymnasium. Its state is set directly: hashing a seed would cost as much as some steps.
        stream: Any = {"state": (high << 64) | low, "inc": 2 * (0x9E3779B97F4A7C15 + index) + 1}
        generator.bit_generator.state = {"bit_generator": "PCG64", "state": stream, "has_uint32": 0, "uinteger": 0}
    else:
        seed = np.random.SeedSequence([high, low, index])
        generator.bit_generator.state = type(generator.bit_generator)(seed).state


def _is_data(value: Any) -> bool:
    """Tell whether a value is data through and through, with no object in it."""
    if type(value) in CONTAINERS:
        return all(map(_is_data, value.values() if type(value) is dict else value))
    return type(value) in ATOMS or isinstance(value, np.ndarray | np.generic)


def _read(value: Any, survey: Survey, path: str) -> Any:
    """Return a value as a nest of plain ones, or `MISSED`."""
    kind = type(value)
    if kind in ATOMS or (isinstance(value, np.generic | np.ndarray) and value.dtype.kind in ARRAY_KINDS):
        return value
    if isinstance(value, RandomGenerator):
        survey.generators[path] = value
        return MISSED
    if isinstance(value, CONSTANTS) or id(value) in survey.seen:
        return MISSED
    if kind is dict and all(type(key) in ATOMS for key in value):
        plain = [_read(item, survey, f"{path}[{key!r}]") for key, item in value.items()]
        return MISSED if any(item is MISSED for item in plain) else dict(zip(value, plain, strict=True))
    if kind in CONTAINERS and kind is not dict and (kind is not set or all(type(item) in ATOMS for item in value)):
        plain = [_read(item, survey, f"{path}[{i}]") for i, item in enumerate(value)]
        if any(item is MISSED for item in plain):
            return MISSED
        return deque(plain, value.maxlen) if kind is deque else kind(plain)
    if _keeps_all_in_attributes(kind):
        attributes = read_attributes(value, survey, path)
        if _is_frozen(kind):
            survey.seen.discard(id(value))
        return attributes
    survey.missed[path] = kind.__name__
    return MISSED


def _keeps_all_in_attributes(kind: type) -> bool:
    """Tell whether the instances of a class are nothing but their attributes: then they also pickle by default."""
    names = ("__reduce_ex__", "__reduce__", "__getstate__")
    by_default = all(getattr(kind, name) is getattr(object, name) for name in names)
    return kind is SimpleNamespace or (by_default and kind.__dictoffset__ != 0)


def _is_frozen(kind: type) -> bool:
    """Tell whether instances are values, never changed but replaced: a frozen dataclass."""
    return getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
