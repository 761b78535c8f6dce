"""One step of up to 32 worlds in the order of Box2D: touching points, discrete step, new contacts, impacts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.box2d.contacts import find_contacts, update_contacts
from rhirl.simulators.box2d.continuous import follow, solve_impacts
from rhirl.simulators.box2d.island import clear_slots, finish_island, prepare_island, sweep_islands
from rhirl.simulators.box2d.scene import LANDER, LEFT, RIGHT
from rhirl.simulators.box2d.settings import kernel
from rhirl.simulators.box2d.state import Scratch, World, one_of

F = np.float32


@kernel
def step_worlds(
    worlds: World, grounds: NDArray[np.float32], scratch: Scratch, n: int, gravity: F, force_x: F, force_y: F
) -> None:
    """Advance lanes 0 to n - 1 by 0.02 s; the force acts on the lander's centre during this step only.

    grounds: (n, 11, 10), what each lane stands on.
    """
    for lane in range(n):
        world = one_of(worlds, lane)
        update_contacts(world, grounds[lane], scratch, lane)
        if _is_awake(world):
            prepare_island(world, scratch, lane, gravity, force_x, force_y)
        else:
            clear_slots(scratch, lane)
    # Vector loops leave no remainder to scalar code if they run over whole groups of lanes.
    sweep_islands(scratch, (n + 15) // 16 * 16)
    for lane in range(n):
        world = one_of(worlds, lane)
        if _is_awake(world):
            finish_island(world, scratch, lane)
            moved = (
                follow(world, scratch, lane, LANDER),
                follow(world, scratch, lane, LEFT),
                follow(world, scratch, lane, RIGHT),
            )
            find_contacts(world, grounds[lane], moved)
            solve_impacts(world, grounds[lane], scratch, lane)


@kernel
def _is_awake(world: World) -> bool:
    return bool(world.awake[LANDER] or world.awake[LEFT] or world.awake[RIGHT])
