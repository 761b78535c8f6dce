"""Model parameters that differ from simulation to simulation: masses, friction, gravity, any field of MjModel.

A parameter is a scale factor of the task's own model, or P of them: simulation i runs with factor i mod P. Planning
with P models at once studies transfer and robustness; one factor plans with a model that is wrong in a known way.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS, Batch
from numpy.typing import ArrayLike, NDArray

NAMES = {
    "mass": ("body_mass", "body_inertia"),
    "friction": ("geom_friction", "pair_friction"),
    "gravity": ("opt.gravity",),
}

# (field of MjModel, factors (P,)), applied in order.
Parameters = tuple[tuple[str, NDArray[np.float64]], ...]


def read_parameters(model: mujoco.MjModel, parameters: Mapping[str, ArrayLike]) -> Parameters:
    """Check what a person wrote, `{"mass": 1.2, "friction": [0.5, 1.0, 2.0]}`, and name the fields it scales."""
    scales: list[tuple[str, NDArray[np.float64]]] = []
    for name, value in parameters.items():
        if name not in NAMES and name not in MODEL_FIELDS:
            known = ", ".join(NAMES)
            raise ValueError(f"unknown parameter {name!r}: use {known}, or a field of MjModel like 'dof_damping'")
        if name in MODEL_FIELDS and np.asarray(attrgetter(name)(model)).dtype.kind != "f":
            raise ValueError(f"parameter {name!r} holds whole numbers and cannot be scaled")
        factors = np.atleast_1d(np.asarray(value, np.float64))
        if factors.ndim != 1 or factors.size == 0 or not np.isfinite(factors).all():
            raise ValueError(f"parameter {name!r} must be one finite scale factor or a list of them, not {value!r}")
        if name == "mass" and (factors <= 0).any():
            raise ValueError(f"the scale of the masses must be positive, not {factors.min()}")
        scales += [(field, factors) for field in NAMES.get(name, (name,))]
    return tuple(scales)


def scale_models(batch: Batch, parameters: Parameters) -> None:
    """Give every simulation of a fresh batch its own values, and the constants MuJoCo derives from them."""
    for field, factors in parameters:
        values = batch.expand(field)
        own = factors[np.arange(batch.nsim) % factors.size]
        values *= own.reshape(-1, *(1,) * (values.ndim - 1))
    if parameters:
        batch.set_const()
