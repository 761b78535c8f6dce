"""Plain values as bytes and back: what a Gymnasium environment's state becomes before it enters a checkpoint.

An environment keeps its state in all sorts of values: floats, `None` before the first step, tuples, dictionaries,
128-bit integers of a random generator. A checkpoint holds arrays only, and nothing in it may execute code when
read. So a nest of plain values becomes one `uint8` vector

    8 bytes: length of the layout | the layout, as JSON | the numbers, as raw little-endian bytes

where the layout tells kinds, shapes and types, and every number keeps its exact bits and its exact type (a Python
float must not come back as `np.float64`: NumPy promotes the two differently). Reading it back can only ever make
plain values.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ATOMS = frozenset({type(None), bool, int, float, complex, str})
ARRAY_KINDS = "biufcSU"


class Attributes(NamedTuple):
    """The attributes of one Python object that hold plain values, with the name of its class."""

    kind: str
    values: dict[str, Any]


class NotPlainError(TypeError):
    """A value that is no nest of numbers, strings, arrays and containers."""


def pack(value: Any) -> NDArray[np.uint8]:
    """Turn a nest of plain values into one vector of bytes, or raise `NotPlainError`."""
    blocks: list[bytes] = []
    layout = json.dumps(_describe(value, blocks, ""), separators=(",", ":")).encode()
    data = b"".join([struct.pack("<Q", len(layout)), layout, *blocks])
    return np.frombuffer(data, np.uint8).copy()


def unpack(packed: NDArray[np.uint8]) -> Any:
    """Turn the bytes of `pack` back into the values, or raise `ValueError`."""
    try:
        data = np.asarray(packed, np.uint8).tobytes()
        (size,) = struct.unpack_from("<Q", data)
        return _Reader(data, 8 + size).value(json.loads(data[8 : 8 + size]))
    except (struct.error, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise ValueError("these bytes are not a packed state, or they are damaged") from error


def _describe(value: Any, blocks: list[bytes], path: str) -> Any:
    """Return the JSON layout of a value and append its bytes to `blocks`."""

    def nest(items: Any) -> list[Any]:
        return [_describe(item, blocks, f"{path}[{i}]") for i, item in enumerate(items)]

    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        size = 8 if value.bit_length() < 64 else 32 * (value.bit_length() // 256 + 1)
        blocks.append(value.to_bytes(size, "little", signed=True))
        return ["int", size]
    if kind is float or kind is complex:
        blocks.append(np.asarray(value).tobytes())
        return [kind.__name__]
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        blocks.append(value.tobytes())
        dtype = value.dtype.str
        return ["array", dtype, list(value.shape)] if isinstance(value, np.ndarray) else ["scalar", dtype]
    if kind is list or kind is tuple or kind is set:
        return [kind.__name__, nest(value)]
    if kind is deque:
        return ["deque", value.maxlen, nest(value)]
    if kind is dict:
        return ["dict", nest(value.keys()), [_describe(v, blocks, f"{path}[{k!r}]") for k, v in value.items()]]
    if kind is Attributes:
        names = list(value.values)
        return ["attributes", value.kind, names, [_describe(value.values[n], blocks, f"{path}.{n}") for n in names]]
    raise NotPlainError(f"{path.lstrip('.') or 'the value'} is a {kind.__name__}")


class _Reader:
    """Reads numbers off the raw bytes in the order in which the layout names them."""

    def __init__(self, data: bytes, offset: int) -> None:
        self.data, self.offset = data, offset

    def take(self, size: int) -> bytes:
        self.offset += size
        if self.offset > len(self.data):
            raise ValueError("the bytes end too early")
        return self.data[self.offset - size : self.offset]

    def array(self, dtype: str, shape: list[int]) -> NDArray[Any]:
        kind = np.dtype(dtype)
        if kind.kind not in ARRAY_KINDS:
            raise ValueError(f"no state holds arrays of {dtype}")
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        return np.frombuffer(self.take(size), kind).reshape(shape).copy()

    def value(self, layout: Any) -> Any:
        if not isinstance(layout, list):
            return layout
        match layout:
            case ["int", size]:
                return int.from_bytes(self.take(size), "little", signed=True)
            case ["float"]:
                return struct.unpack("<d", self.take(8))[0]
            case ["complex"]:
                return complex(*struct.unpack("<dd", self.take(16)))
            case ["array", dtype, shape]:
                return self.array(dtype, shape)
            case ["scalar", dtype]:
                return self.array(dtype, [])[()]
            case ["list", items]:
                return [self.value(item) for item in items]
            case ["tuple", items]:
                return tuple(self.value(item) for item in items)
            case ["set", items]:
                return {self.value(item) for item in items}
            case ["deque", maxlen, items]:
                return deque([self.value(item) for item in items], maxlen)
            case ["dict", keys, values]:
                return dict(zip([self.value(k) for k in keys], [self.value(v) for v in values], strict=True))
            case ["attributes", kind, names, values]:
                return Attributes(kind, dict(zip(names, [self.value(v) for v in values], strict=True)))
        raise ValueError(f"unknown kind of value: {layout[:1]}")
