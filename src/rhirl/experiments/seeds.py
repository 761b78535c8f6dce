"""Which random seeds belong to whom, so that nothing is ever tuned on what it is scored by.

| owner         | seeds              | what for                                                     |
|---------------|--------------------|--------------------------------------------------------------|
| training      | 0 … 2³⁰ − 1        | initial states the learner acts from (`RHIRL` derives them)  |
| validation    | 2³⁰ … 2³¹ − 1      | the evaluations shown while training, and all tuning         |
| evaluation    | 2³¹ … 2³² − 1      | `rhirl eval`: the numbers that are published                 |
| demonstration | from 2³²           | episodes that experts demonstrate                            |
| reference     | from 2³³           | the expert's and the random agent's own returns              |
"""

from __future__ import annotations

VALIDATION, EVALUATION, DEMONSTRATION, REFERENCE = 2**30, 2**31, 2**32, 2**33
BLOCK = 10_000  # episodes a seed may have before it would run into the next one's


def episode_seeds(owner: int, seed: int, episodes: int) -> list[int]:
    """Return the reset seeds of `episodes` episodes for run seed `seed`."""
    if not 1 <= episodes <= BLOCK or not 0 <= seed < 100_000:
        raise ValueError(f"seed must lie in 0…99999 and episodes in 1…{BLOCK}, not {seed} and {episodes}")
    return [owner + seed * BLOCK + i for i in range(episodes)]
