"""Linear maps along the horizon: spline knots to time steps, and the Savitzky–Golay filter.

Both are fixed matrices for a given horizon, so the planner applies them as one small product.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.signal import savgol_filter


@cache
def knot_basis(K: int, knots: int, *, unit_variance: bool = False) -> NDArray[np.float32]:
    """Return B (K, knots) such that B @ values is the spline through `values` at evenly spaced knots.

    The spline is cubic (of lower degree for fewer than four knots). With `unit_variance` the rows have norm one, so
    that independent noise on the knots has the same variance at every time step: without it, noise would be
    weaker between the knots than on them.
    """
    at = np.linspace(0.0, K - 1.0, knots)
    B = make_interp_spline(at, np.eye(knots), k=min(3, knots - 1))(np.arange(K))
    if unit_variance:
        B /= np.linalg.norm(B, axis=1, keepdims=True)
    return np.asarray(B, np.float32)


@cache
def savitzky_golay(K: int, window: int, order: int) -> NDArray[np.float32] | None:
    """Return A (K, K) such that A @ U is scipy's `savgol_filter` of U; None where the filter does nothing.

    A horizon shorter than the window takes the largest odd window that fits.
    """
    window = min(window, K if K % 2 else K - 1)
    if window <= order + 1:
        return None
    return np.asarray(savgol_filter(np.eye(K), window, order, axis=0, mode="interp"), np.float32)
