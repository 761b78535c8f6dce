"""Box2D's tuning constants in float32, and the decorators every kernel shares."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

f32 = np.float32

# No fast-math: neither reassociation nor fused multiply-add may change a bit. Division by zero follows IEEE. Inner
# kernels are called by other kernels only; they need no face towards Python and no cache of their own.
_options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}
_inner: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
outer_kernel = numba.njit(**_options, cache=True)
kernel = numba.njit(**_options, **_inner)
# For what runs inside a loop over lanes: only an inlined body can be vectorised.
inline_kernel = numba.njit(**_options, **_inner, forceinline=True)

ZERO, HALF, ONE, TWO = f32(0.0), f32(0.5), f32(1.0), f32(2.0)
EPSILON = np.finfo(f32).eps
MAX_FLOAT = np.finfo(f32).max
PI = f32(3.14159265359)

# Rollouts simulated side by side, so that the sweeps below run in vector registers. The compiler unrolls loops of
# sixteen or fewer instead of vectorising them.
LANES = 32

DT = f32(0.02)
INV_DT = ONE / DT
DT_RATIO = INV_DT * DT
VELOCITY_ITERATIONS = 180
POSITION_ITERATIONS = 60
TOI_POSITION_ITERATIONS = 20
MAX_SUB_STEPS = 8

LINEAR_SLOP = f32(0.005)
ANGULAR_SLOP = TWO / f32(180.0) * PI
SKIN = TWO * LINEAR_SLOP
TWO_SKINS = TWO * SKIN
BOX_MARGIN = f32(0.1)
BOX_LOOKAHEAD = TWO

MAX_LINEAR_CORRECTION = f32(0.2)
MAX_ANGULAR_CORRECTION = f32(8.0) / f32(180.0) * PI
MAX_TRANSLATION = f32(2.0)
MAX_ROTATION = HALF * PI
BAUMGARTE = f32(0.2)
TOI_BAUMGARTE = f32(0.75)
MAX_CONDITION_NUMBER = f32(1000.0)

TIME_TO_SLEEP = f32(0.5)
LINEAR_SLEEP_TOLERANCE = f32(0.01)
ANGULAR_SLEEP_TOLERANCE = TWO / f32(180.0) * PI
