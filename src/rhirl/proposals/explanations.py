"""Explanations of demonstrations: asked of the simulator on all cores, and kept for other seeds.

Ant's ten demonstrations take a core ten minutes. No demonstration needs another one's explanation, and every seed
that learns from them needs the same. They lie under `$XDG_CACHE_HOME/rhirl/explained` (`~/.cache` where that is
not set) and may be deleted at any time. A file's name is a digest of all that an explanation follows from, the code
included, so an old one is never mistaken for a new one: it is only not found.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from rhirl.atomic import write_atomically
from rhirl.demos import Demonstrations
from rhirl.learning import Explained, explain_episode, scale_of
from rhirl.machine import side_by_side, surroundings
from rhirl.proposals.apprentice import ASKING, Note, explain_demos, explained, invertible
from rhirl.simulators import InvertibleSimulator, Simulator
from rhirl.simulators.threads import usable_cores
from rhirl.tasks import Task, get_task

FEW = 1_000
"""Transitions that one process explains sooner than others could start."""
CODE = ("learning/explain.py", "simulators")
"""What of the package an explanation follows from; what a task has set up shows in its simulator's behaviour."""


def explanation(task: Task, demos: Demonstrations, note: Note = lambda _: None) -> Explained:
    """Return the controls that explain demonstrations, asked of the simulator unless they are known."""
    path = folder() / f"{digest(task, demos)}.safetensors"
    try:
        known = Explained(**load_file(path))
        note(f"what the demonstrator did is known: {path}")
        return known
    except (OSError, SafetensorError, TypeError):
        found = ask(task, demos, min(usable_cores(), len(demos)), note)
    try:
        # Other processes may be writing the same: each under a name of its own, and the last one stays.
        own = path.with_name(f"{path.name}.{os.getpid()}")
        write_atomically(own, save(dict(found._asdict())))
        own.replace(path)
    except OSError as error:
        note(f"the explanation is not kept for other runs: {error}")
    return found


def ask(task: Task, demos: Demonstrations, workers: int, note: Note = lambda _: None) -> Explained:
    """Ask the task's simulator what was done, in `workers` processes where that is worth their start."""
    frames = len(demos.observation_shape) > 1  # only the process that has played them can trace them back
    if workers == 1 or frames or demos.lengths.sum() < FEW:
        return explain_demos(task.simulator(), demos, note)
    invertible(task.simulator())  # an error that names the reason, before others raise theirs
    note(ASKING)

    def tell(count: int, _: Explained) -> None:
        note(explained(count + 1, len(demos)))

    episode = partial(_episode, task.name, demos, scale_of(demos))
    return Explained.of_episodes(side_by_side(episode, range(len(demos)), workers, tell))


def _episode(task: str, demos: Demonstrations, scale: NDArray[np.float64], i: int) -> Explained:
    """Explain one episode, in a process that keeps its simulator for the next."""
    return explain_episode(_simulator(task), demos, scale, i)


@cache
def _simulator(task: str) -> InvertibleSimulator:
    return invertible(get_task(task).simulator())


def folder() -> Path:
    """Return where explanations are kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "rhirl" / "explained"


def digest(task: Task, demos: Demonstrations) -> str:
    """Return a SHA-256 of the demonstrated states, the task's simulator, the code and what that stands on."""
    sha = hashlib.sha256(json.dumps([task.name, surroundings()["versions"], demos.observations.shape]).encode())
    for array in (demos.observations, demos.lengths, *behaviour(task.simulator())):
        sha.update(np.ascontiguousarray(array).tobytes())
    root = Path(str(files("rhirl")))
    for part in CODE:
        for path in sorted((root / part).rglob("*.py")) or [root / part]:
            sha.update(path.read_bytes())
    return sha.hexdigest()


def behaviour(simulator: Simulator) -> list[NDArray[Any]]:
    """Return where a few controls lead, in rollouts and step by step: no two simulators share every bit of it."""
    V = np.random.default_rng(0).uniform(-1, 1, (2, 5, simulator.control_dim)).astype(np.float32)
    state = simulator.reset(seed=0)
    seen = [simulator.rollout(state, V).observations]
    for v in V[0]:
        state = simulator.step(state, v)
        seen.append(simulator.observe(state))
    return seen
