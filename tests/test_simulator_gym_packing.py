"""States of Gymnasium environments as bytes, and read from attributes: nothing lost, nothing executed."""

from __future__ import annotations

import enum
import logging
import random
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rhirl.simulators.gym_attributes import (
    Survey,
    random_state,
    read_attributes,
    reseed,
    set_random_state,
    write_attributes,
)
from rhirl.simulators.gym_packing import Attributes, NotPlainError, pack, unpack

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.floats(width=32).map(np.float32),
)
ARRAYS = st.builds(
    lambda shape, dtype, seed: np.random.default_rng(seed).integers(-100, 100, shape).astype(dtype),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(["<f8", ">f4", "<i2", "u1", "?", "<c16", "<U4"]),
    st.integers(0, 9),
)
NESTS = st.recursive(
    ATOMS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(lambda items: deque(items, 7))
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers(), st.text()), inner, max_size=3)
        | st.sets(st.integers() | st.text(), max_size=3)
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    """Tell whether two nests agree in type and in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple | deque):
        return len(a) == len(b) and all(map(same, a, b))
    return np.asarray(a).tobytes() == np.asarray(b).tobytes() if isinstance(a, float | complex) else a == b


@given(NESTS)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_packing_keeps_every_bit_and_every_type(value: Any) -> None:
    packed = pack(value)
    assert packed.dtype == np.uint8
    assert same(unpack(packed), value)


@given(NESTS, st.data())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_damaged_bytes_are_refused_or_read_as_plain_values(value: Any, data: st.DataObject) -> None:
    packed = pack(value)
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(ValueError):
        pack(unpack(packed))


def test_a_shorter_or_foreign_vector_is_refused() -> None:
    packed = pack({"x": np.arange(4.0)})
    for bad in (packed[:-1], packed[:5], np.zeros(0, np.uint8), np.frombuffer(b"\x80\x04." * 9, np.uint8)):
        with pytest.raises(ValueError, match="damaged"):
            unpack(bad)


def test_an_object_is_not_plain_and_the_error_says_where() -> None:
    with pytest.raises(NotPlainError, match=r"\['a'\]\[1\] is a object"):
        pack({"a": [1, object()]})


@dataclass(frozen=True)
class Pose:
    x: float
    y: float


class Mode(enum.Enum):
    IDLE = 0
    FLYING = 1


@dataclass
class Robot:
    pose: Pose = Pose(0.0, 0.0)
    speed: Any = None
    trail: deque[float] = field(default_factory=lambda: deque(maxlen=3))


class World:
    HOME = Pose(0.0, 0.0)

    def __init__(self) -> None:
        self.robot = Robot(self.HOME)
        self.robots = [self.robot]
        self.world = self
        self.grid = np.zeros((2, 2))
        self.table = {"a": [1, 2]}
        self.logger = logging.getLogger("world")
        self.mode = Mode.IDLE
        self.rng = np.random.default_rng(0)


def capture(world: World) -> Attributes:
    """Read a world and pack it, as a state does."""
    return unpack(pack(read_attributes(world, Survey())))


def test_attributes_are_restored_through_nested_objects() -> None:
    world, other = World(), World()
    state = capture(world)
    world.robot.pose, world.robot.speed = Pose(1.0, 2.0), np.ones(2)
    world.robot.trail.append(3.0)
    world.grid += 5
    world.table["a"].append(3)
    changed = capture(world)
    robot = other.robot
    write_attributes(other, changed)
    assert same(capture(other), changed)
    assert other.robot is robot is other.robots[0]
    assert other.grid is not world.grid
    write_attributes(world, state)
    assert same(capture(world), state)
    assert Pose(0.0, 0.0) == World.HOME


def test_what_came_after_the_snapshot_goes_with_the_restore() -> None:
    world = World()
    state = capture(world)
    window = object()
    vars(world).update(cache=[1.0], window=window)
    write_attributes(world, state)
    assert "cache" not in vars(world)
    assert vars(world)["window"] is window


def test_what_cannot_be_read_is_left_alone_and_named() -> None:
    world, survey = World(), Survey()
    attributes = read_attributes(world, survey)
    assert set(attributes.values) == {"robot", "grid", "table"}
    assert survey.missed == {"logger": "Logger", "mode": "Mode"}
    assert list(survey.generators) == ["rng"]
    other = World()
    other.mode = Mode.FLYING
    write_attributes(other, capture(world))
    assert other.mode is Mode.FLYING


@pytest.mark.parametrize(
    "generator",
    [
        np.random.default_rng(1),
        np.random.Generator(np.random.Philox(1)),
        np.random.Generator(np.random.MT19937(1)),
        np.random.mtrand.RandomState(1),
        random.Random(1),
    ],
)
def test_every_kind_of_random_generator_is_restored_and_reseeded(generator: Any) -> None:
    def draw() -> list[float]:
        return [generator.random() for _ in range(5)]

    draw()
    state = unpack(pack(random_state(generator)))
    first = draw()
    set_random_state(generator, state)
    assert draw() == first
    key = np.array([3, 2**64 - 1], np.uint64)
    reseed(generator, key, 0)
    a = draw()
    reseed(generator, key, 0)
    assert draw() == a != first
    reseed(generator, key, 1)
    assert draw() != a
    reseed(generator, key + np.uint64(1), 0)
    assert draw() != a
