"""Explanations of demonstrations are kept: Ant's simulator is asked for ten minutes, once and not for every seed.

They lie under `$XDG_CACHE_HOME/rhirl/explained` (`~/.cache` where that is not set) and may be deleted at any time.
A file's name is a digest of all that an explanation follows from, the code included, so an old one is never
mistaken for a new one: it is only not found.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from rhirl.atomic import write_atomically
from rhirl.demos import Demonstrations
from rhirl.experiments.proposal import Note, explain_demos
from rhirl.experiments.run import surroundings
from rhirl.learning import Explained
from rhirl.tasks import Task

CODE = ("learning/explain.py", "simulators", "tasks")
"""What of the package an explanation follows from."""


def explanation(task: Task, demos: Demonstrations, note: Note = lambda _: None) -> Explained:
    """Return the controls that explain demonstrations, asked of the simulator unless they are known."""
    path = folder() / f"{digest(task, demos)}.safetensors"
    try:
        known = Explained(**load_file(path))
        note(f"what the demonstrator did is known: {path}")
        return known
    except (OSError, SafetensorError, TypeError):
        found = explain_demos(task.simulator(), demos, note)
    try:
        # Other processes may be writing the same: each under a name of its own, and the last one stays.
        own = path.with_name(f"{path.name}.{os.getpid()}")
        write_atomically(own, save(dict(found._asdict())))
        own.replace(path)
    except OSError as error:
        note(f"the explanation is not kept for other runs: {error}")
    return found


def folder() -> Path:
    """Return where explanations are kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "rhirl" / "explained"


def digest(task: Task, demos: Demonstrations) -> str:
    """Return a SHA-256 of the demonstrated states, the task, the code and the versions of what it stands on."""
    sha = hashlib.sha256(json.dumps([task.name, surroundings()["versions"], demos.observations.shape]).encode())
    for array in (demos.observations, demos.lengths):
        sha.update(np.ascontiguousarray(array).tobytes())
    root = Path(str(files("rhirl")))
    for part in CODE:
        for path in sorted((root / part).rglob("*.py")) or [root / part]:
            sha.update(path.read_bytes())
    return sha.hexdigest()
