"""Between a Gymnasium environment's spaces and the simulator's own: controls in [-1, 1], observations as arrays.

    Box       a = (high + low)/2 + (high − low)/2 · v, one control per entry, in the space's own type
    Discrete  a = start + ⌊n (v + 1)/2⌋, one control whose range [-1, 1] is cut into n equal bins

Any other action space, or any other mapping, is a function `to_action(v)` from the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

ToAction = Callable[[NDArray[np.float32]], Any]
"""Turns one control v (m,) in [-1, 1] into an action of the environment."""

ToActions = Callable[[NDArray[np.float32]], Any]
"""Turns controls (…, K, m) into actions, one per control, indexed like the controls."""


def observations_of(space: spaces.Space[Any], name: str) -> tuple[tuple[int, ...], type[np.generic]]:
    """Return the shape of an observation, and its type: uint8 for images, float32 for all else."""
    if not isinstance(space, spaces.Box):
        raise ValueError(
            f"{name} has observations of type {type(space).__name__}, and a cost needs arrays: "
            "wrap the environment in gymnasium.wrappers.FlattenObservation inside make_env"
        )
    return space.shape, np.uint8 if space.dtype == np.uint8 else np.float32


def actions_of(
    space: spaces.Space[Any], to_action: ToAction | None, control_dim: int | None, name: str
) -> tuple[ToActions, int]:
    """Return the mapping from controls to actions, and the number of controls m."""
    if to_action is not None:
        if control_dim is None:
            raise ValueError("to_action needs control_dim as well: the number of controls it takes")
        return lambda controls: _each(to_action, controls), control_dim
    if isinstance(space, spaces.Discrete):
        n, start = int(space.n), int(space.start)
        return lambda controls: start + np.clip((n * (controls[..., 0] + 1) / 2).astype(np.int64), 0, n - 1), 1
    if isinstance(space, spaces.Box) and space.is_bounded():
        low, high = space.low.astype(space.dtype), space.high.astype(space.dtype)
        centre, half = (high + low) / 2, (high - low) / 2
        return lambda controls: _scale(controls, low, high, centre, half), low.size
    raise ValueError(
        f"{name} takes actions from {space}, which has no natural map from controls in [-1, 1]: "
        "pass to_action=, a function from one control (m,) to an action, and control_dim=m"
    )


def _scale(
    controls: NDArray[np.float32], low: NDArray[Any], high: NDArray[Any], centre: NDArray[Any], half: NDArray[Any]
) -> NDArray[Any]:
    """Scale controls (…, m) to a box; the clip takes back the last bit that rounding may have put outside."""
    v = controls.reshape(*controls.shape[:-1], *low.shape)
    return np.clip((centre + half * v).astype(low.dtype), low, high)


def _each(to_action: ToAction, controls: NDArray[np.float32]) -> Any:
    """Apply a user's function to every control of (…, m), as nested lists."""
    return to_action(controls) if controls.ndim == 1 else [_each(to_action, part) for part in controls]
