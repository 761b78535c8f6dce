"""From a task's preset and a person's wishes to a complete configuration, and to JSON and back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from rhirl.learning import Config
from rhirl.tasks import Task

Kind = TypeVar("Kind")
PLANNERS = ("deploy.", "amid_noise.")
"""What the settings of the planners begin with that are like the learning one unless told otherwise."""


def configure(task: Task, preset: str = "default", overrides: Iterable[str] = ()) -> Config:
    """Build RHIRL's configuration of a preset, with overrides such as `lr=1e-3` or `planner.M=100` applied.

    A planner that the preset does not have starts as the learning one: `deploy.M=400` changes M only.
    """
    return choose(Config, task.presets, task.name, preset, overrides)


def choose(
    kind: type[Kind],
    presets: Mapping[str, Mapping[str, Any]],
    task: str,
    preset: str = "default",
    overrides: Iterable[str] = (),
) -> Kind:
    """Build a method's configuration of one of its presets for a task, with overrides applied."""
    if preset not in presets:
        raise ValueError(f"{task} has no preset {preset!r}; there are {', '.join(sorted(presets))}")
    values = {key: dict(v) if isinstance(v, Mapping) else v for key, v in presets[preset].items()}
    for override in sorted(overrides, key=lambda text: text.startswith(PLANNERS)):
        name, equals, text = override.partition("=")
        if not equals:
            raise ValueError(f"{override!r}: settings are given as name=value, for example planner.M=100")
        *room, leaf = name.split(".")
        if len(room) == 1 and name.startswith(PLANNERS) and values.get(room[0]) is None:
            values[room[0]] = dict(values.get("planner", {}))
        target: Any = values
        for part in room:
            target = target.setdefault(part, {})
            if not isinstance(target, dict):
                raise ValueError(f"no setting {name}: {part} is a single value")
        target[leaf] = _value(text)
    return build(kind, values)


def to_dict(config: Any) -> dict[str, Any]:
    """Turn a configuration into plain JSON values."""
    return asdict(config)


def from_dict(values: Mapping[str, Any]) -> Config:
    """Turn plain values into RHIRL's configuration."""
    return build(Config, values)


def build(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Turn plain values into a configuration; a wrong name or type is an error that says what is wanted."""
    config: Kind = _build(kind, values, "")
    return config


def _build(kind: type[Any], values: Any, prefix: str) -> Any:
    hints = get_type_hints(kind)
    if not isinstance(values, Mapping):
        raise ValueError(f"{prefix}* are single settings, such as {prefix}M=100; {values!r} cannot stand for all")
    for name in values:
        if name not in hints:
            raise ValueError(f"no setting {prefix}{name}; there are {', '.join(prefix + n for n in sorted(hints))}")
    return kind(**{name: _typed(value, hints[name], prefix + name) for name, value in values.items()})


def _typed(value: Any, hint: Any, name: str) -> Any:
    """Return a value as its field's type, where that loses nothing: 1e3 is an integer, 2.5 is none."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kind = kinds[0]
    if value is None and NoneType in kinds:
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        return _build(kind, value, f"{name}.")
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        raise ValueError(f"{name} is one of {', '.join(map(str, get_args(kind)))}, not {value!r}")
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_typed(item, get_args(kind)[0], name) for item in value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (kind is bool and isinstance(value, bool)) or (kind is float and is_number):
        return kind(value)
    if kind is int and is_number and float(value).is_integer():
        return int(value)
    if kind is str and isinstance(value, str):
        return value
    raise ValueError(f"{name} is of type {getattr(hint, '__name__', hint)}, which {value!r} is not")


def _value(text: str) -> Any:
    """Read a number, a tuple, None, True or False; anything else is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
