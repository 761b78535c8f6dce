"""Many runs: which ones (`specs`), each from nothing to its evaluations (`cells`), by whom (`engines`, `schedule`).

How far they are and how long they take, `progress`, `estimates` and `display` tell; `results` reads back what came
out. The grids that come with the package lie in `built_in`.
"""

from rhirl.experiments.grid.cells import Cell
from rhirl.experiments.grid.display import GridDisplay
from rhirl.experiments.grid.engines import InTurn, OnRay
from rhirl.experiments.grid.schedule import Outcome, check, run_grid
from rhirl.experiments.grid.specs import Spec, is_spec, read_spec

__all__ = [
    "Cell",
    "GridDisplay",
    "InTurn",
    "OnRay",
    "Outcome",
    "Spec",
    "check",
    "is_spec",
    "read_spec",
    "run_grid",
]
