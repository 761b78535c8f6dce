"""MPPI as pure JAX functions: sample, weigh, update the nominal plan, smooth, warm start."""

from rhirl.planning.mppi import (
    Planner,
    Weighing,
    effective_sample_size,
    sample,
    smooth,
    temperature_for_ess,
    update,
    warm_start,
    weigh,
    weights,
)

__all__ = [
    "Planner",
    "Weighing",
    "effective_sample_size",
    "sample",
    "smooth",
    "temperature_for_ess",
    "update",
    "warm_start",
    "weigh",
    "weights",
]
