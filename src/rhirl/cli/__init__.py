"""The command line: one verb for each thing a person wants.

What `--json` prints is one JSON document on standard output and nothing else; people's words go to standard error.
Heavy imports wait inside the verbs, so that help is quick and worker processes stay small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import tyro

from rhirl.cli import bench, demos, grids, runs
from rhirl.cli.output import say

Verbs = dict[str, Callable[..., None]]

VERBS: Verbs = {
    "tasks": runs.tasks,
    "train": runs.train,
    "eval": runs.evaluate,
    "expert": runs.expert,
    "grid": grids.grid,
    "table": grids.table,
    "figure": grids.figure,
    "report": grids.report,
    "doctor": runs.doctor,
}
GROUPS: dict[str, tuple[str, Verbs]] = {
    "demos": (
        "Demonstrations: collect, inspect, import, export.",
        {"collect": demos.collect, "inspect": demos.inspect, "import": demos.import_, "export": demos.export},
    ),
    "bench": (
        "Speed, measured side by side in one run: simulator, step.",
        {"simulator": bench.simulator, "step": bench.step},
    ),
}
DESCRIPTION = "Learn a cost function from state-only, noisy demonstrations by planning with a simulator."


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    words = list(sys.argv[1:] if argv is None else argv)
    name, description = "rhirl", DESCRIPTION
    verbs = VERBS | {group: _stand_in(group) for group in GROUPS}
    if words and words[0] in GROUPS:
        name = f"rhirl {words[0]}"
        description, verbs = GROUPS[words[0]]
        words = words[1:]
    try:
        tyro.extras.subcommand_cli_from_dict(verbs, prog=name, description=description, args=words)
    except (ValueError, OSError, KeyError, ImportError) as error:
        say(f"error: {error.args[0] if isinstance(error, KeyError) else error}")
        sys.exit(2)


def _stand_in(group: str) -> Callable[[], None]:
    """Stand for a group of verbs in the list of all."""

    def verb() -> None:
        main([group, "--help"])

    verb.__doc__ = GROUPS[group][0]
    return verb
