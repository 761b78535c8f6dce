"""Environments in processes of their own, so that stepping uses more than one core.

Each worker holds a share of the environments and a NumPy copy of the actor: a whole round is collected without a
word between the processes. The face is that of `Environments`: start, finish, state, restore, close. Processes
are spawned, never forked, because JAX does not survive a fork.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from rhirl.rl.networks import Actor
from rhirl.rl.replay import Transitions
from rhirl.rl.vector import Environments, MakeEnv, Rollout


def _serve(pipe: Connection, make: MakeEnv, count: int, horizon: int, seed: int, first: int) -> None:
    envs = Environments(make, count, horizon, seed, first)
    pipe.send((envs.n, envs.m))
    while True:
        try:
            verb, *arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(getattr(envs, verb)(*arguments))


class Workers:
    """`count` environments spread over `processes` workers."""

    def __init__(self, make: MakeEnv, count: int, horizon: int, seed: int = 0, *, processes: int) -> None:
        if not 1 <= processes <= count:
            raise ValueError(f"{processes} worker processes cannot share {count} environments; use 1 to {count}")
        context = multiprocessing.get_context("spawn")
        bounds = np.linspace(0, count, processes + 1).astype(int)
        self.shares = np.diff(bounds)
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        for first, share in zip(bounds, self.shares, strict=False):
            ours, theirs = context.Pipe()
            arguments = (theirs, make, int(share), horizon, seed, int(first))
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        self.n, self.m = self._gather()[0]

    def _send(self, *message: Any) -> None:
        for pipe in self.pipes:
            pipe.send(message)

    def _gather(self) -> list[Any]:
        try:
            return [pipe.recv() for pipe in self.pipes]
        except EOFError:
            raise RuntimeError("an environment worker died; its error is printed above") from None

    @property
    def ready(self) -> bool:
        """Whether `finish` would return without waiting."""
        return all(pipe.poll() for pipe in self.pipes)

    def start(self, actor: Actor | None, steps: int) -> None:
        """Ask every worker for a rollout."""
        self._send("rollout", actor, steps)

    def finish(self) -> Rollout:
        """Wait for the rollout asked for; workers in order, so the result does not depend on who was first."""
        parts: list[Rollout] = self._gather()
        columns = zip(*(part.transitions for part in parts), strict=True)
        transitions = Transitions(*(np.concatenate(column) for column in columns))
        returns, lengths = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        return Rollout(transitions, returns, lengths)

    def state(self) -> dict[str, np.ndarray]:
        """State of all environments, worker after worker."""
        self._send("state")
        parts = self._gather()
        whole = {key: np.concatenate([part[key] for part in parts]) for key in ("episodes", "ages", "controls")}
        return {"steps": parts[0]["steps"], **whole}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Hand every worker its share of a state."""
        cuts = np.cumsum(self.shares)[:-1]
        episodes, ages = np.split(state["episodes"], cuts), np.split(state["ages"], cuts)
        controls = np.split(state["controls"], np.cumsum([a.sum() for a in ages])[:-1])
        for pipe, e, a, c in zip(self.pipes, episodes, ages, controls, strict=True):
            pipe.send(("restore", {"steps": state["steps"], "episodes": e, "ages": a, "controls": c}))
        self._gather()

    def close(self) -> None:
        """End the workers."""
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join()
