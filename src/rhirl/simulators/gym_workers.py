"""Worker processes that roll a Gymnasium environment out, each with a copy of its own.

Processes are spawned, never forked: a fork would copy the locks of JAX's threads. The M control sequences are cut
into contiguous parts, one per worker; every rollout starts from the same state and its own random key, so that the
number of workers cannot change a bit.

A worker that dies is started again and given its part once more. Workers end with the process that started them,
however that one ends: an idle worker sees its pipe close, a busy one is watched over by a thread.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
import weakref
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.gym_model import EnvModel, Recipe, RolloutError
from rhirl.simulators.protocol import Rollout, State
from rhirl.simulators.threads import usable_cores

ATTEMPTS = 3
Request = tuple[State, NDArray[np.float32], NDArray[np.uint64], int]


class Workers:
    """A fixed number of processes, started when the first rollout asks for them."""

    def __init__(self, recipe: Recipe, count: int) -> None:
        self.recipe = recipe
        self.count = count
        self._workers: list[_Worker] = []
        weakref.finalize(self, _stop, self._workers)

    def roll(self, state: State, controls: NDArray[np.float32], keys: NDArray[np.uint64]) -> Rollout:
        """Roll V (M, K, m) out with random `keys` (M, 2), as `EnvModel.roll` does."""
        parts = [part for part in np.array_split(np.arange(len(controls)), self.count) if len(part)]
        while len(self._workers) < len(parts):
            self._workers.append(_Worker(self.recipe))
        busy = list(zip(self._workers, parts, strict=False))
        try:
            for worker, part in busy:
                worker.ask((state, controls[part], keys[part], int(part[0])))
            answers = [worker.answer() for worker, _ in busy]
        except BaseException:
            # Interrupted with answers still to come: they must never be taken for those of the next question.
            self.close()
            raise
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return Rollout(*(np.concatenate(arrays) for arrays in zip(*answers, strict=True)))

    def close(self) -> None:
        """End the processes; a later rollout starts new ones."""
        _stop(self._workers)


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.request: Request | None = None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.send(self.recipe)

    def send(self, message: Any) -> None:
        try:
            self.connection.send(message)
        except OSError:
            return  # It has died; whoever waits for its answer finds out.

    def ask(self, request: Request) -> None:
        self.request = request
        self.send(request)

    def answer(self) -> Any:
        """Wait for the answer to the last question; if the process has died, start it and ask again."""
        for attempt in range(ATTEMPTS):
            if attempt:
                self.start()
                self.send(self.request)
            try:
                # Polling sees a death even where some process of the environment's own keeps the pipe open.
                while not self.connection.poll(1.0):
                    if not self.process.is_alive():
                        raise EOFError
                return self.connection.recv()
            except (EOFError, OSError):
                self.stop()
        raise RuntimeError(
            f"a worker process died {ATTEMPTS} times on the same rollouts (exit code {self.process.exitcode}). "
            "Pass workers=0 to see what happens; in a script, keep the program under `if __name__ == '__main__':`"
        )

    def stop(self) -> None:
        self.connection.close()
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def default_count() -> int:
    """Return one worker per core this process may use; none on a single core, or where no process may start."""
    cores = usable_cores()
    return 0 if cores == 1 or multiprocessing.current_process().daemon else cores


def why_not_sendable(recipe: Recipe) -> str:
    """Say why a new process could not find the user's functions again; empty if it can."""
    try:
        message = bytes(ForkingPickler.dumps(recipe))
    except Exception as error:
        return str(error)
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None and b"__main__" in message:
        return "a function is defined in a notebook or at the prompt, not in a file"
    if path is not None and main.__spec__ is None and not os.path.exists(path):
        return f"the program comes from {path}, which a new process cannot read again"
    return ""


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.connection.close()
    for worker in workers:
        worker.stop()
    workers.clear()


def _serve(connection: Connection) -> None:
    """Build the model, then answer one request after the other until the pipe closes."""
    # Ctrl-C reaches the whole group of processes; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    model: EnvModel | None = None
    try:
        model = EnvModel(connection.recv())
    except Exception:
        failure = RuntimeError(f"a worker process could not build the environment:\n{traceback.format_exc()}")
    while True:
        try:
            request = connection.recv()
            connection.send(failure if model is None else _answer(model, request))
        except (EOFError, OSError):
            break
    if model is not None:
        model.env.close()


def _answer(model: EnvModel, request: Request) -> Any:
    try:
        return tuple(model.roll(*request))
    except RolloutError as error:
        error.add_note(traceback.format_exc())
        return error
    except Exception:
        return RuntimeError(f"a rollout failed in a worker process:\n{traceback.format_exc()}")


def _end_with_parent() -> None:
    """End this process when its parent is gone, even in the middle of a step."""
    parent = multiprocessing.parent_process()
    while parent is not None and parent.is_alive() and os.getppid() == parent.pid:
        parent.join(1.0)
    os._exit(1)
