"""Independent streams of randomness outside JAX, each a pure function of the run's seed and a position."""

from __future__ import annotations

import numpy as np

RESET, EXECUTION, SIMULATION, PROCESS, START, DANGER, REHEARSAL = range(7)


def draw(seed: int, stream: int, *index: int) -> int:
    """Derive a seed from the run's seed, a stream and a position in it; below 2³⁰, which training owns."""
    return int(np.random.SeedSequence([seed, stream, *index]).generate_state(1)[0]) >> 2
