"""Checks on what enters a simulator, so that a mistake is an error and never a wrong number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_controls(controls: NDArray[Any], control_dim: int) -> NDArray[np.float32]:
    """Return V (M, K, m) as contiguous float32, or say what is wrong with it."""
    V = np.ascontiguousarray(controls, np.float32)
    if V.ndim != 3 or V.shape[2] != control_dim or V.shape[1] == 0:
        raise ValueError(f"controls must have shape (M, K ≥ 1, {control_dim}), not {V.shape}")
    return V


def check_state(state: NDArray[Any], shape: tuple[int, ...], name: str) -> None:
    """Refuse a state that cannot be of this simulator."""
    if np.shape(state) != shape:
        raise ValueError(f"a {name} state has shape {shape}, not {np.shape(state)}: is it of another task?")
