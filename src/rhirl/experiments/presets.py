"""From a task's preset and a person's wishes to a complete configuration, and to JSON and back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from rhirl.learning import Config
from rhirl.planning import Planner
from rhirl.tasks import Task


def configure(task: Task, preset: str = "default", overrides: Iterable[str] = ()) -> Config:
    """Build the configuration of a preset, with overrides such as `lr=1e-3` or `planner.M=100` applied."""
    if preset not in task.presets:
        raise ValueError(f"{task.name} has no preset {preset!r}; there are {', '.join(sorted(task.presets))}")
    values = {key: dict(v) if isinstance(v, Mapping) else v for key, v in task.presets[preset].items()}
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals:
            raise ValueError(f"{override!r}: settings are given as name=value, for example planner.M=100")
        *room, leaf = name.split(".")
        target = values
        for part in room:
            target = target.setdefault(part, {})
        target[leaf] = _value(text)
    return from_dict(values)


def to_dict(config: Config) -> dict[str, Any]:
    """Turn a configuration into plain JSON values."""
    return asdict(config)


def from_dict(values: Mapping[str, Any]) -> Config:
    """Turn plain values into a configuration; a name that is no field is an error that lists those there are."""
    values = dict(values)
    for name in ("planner", "deploy"):
        if values.get(name) is not None:
            values[name] = Planner(**_known(Planner, values[name], f"{name}."))
    if "hidden" in values:
        values["hidden"] = tuple(values["hidden"])
    return Config(**_known(Config, values, ""))


def _known(kind: type[Any], values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    for name in values:
        if name not in names:
            raise ValueError(f"no setting {prefix}{name}; there are {', '.join(prefix + n for n in sorted(names))}")
    return dict(values)


def _value(text: str) -> Any:
    """Read a number, a tuple, None, True or False; anything else is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
