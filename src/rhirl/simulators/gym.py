"""Any Gymnasium environment as a simulator, with no more than a function that builds it.

    simulator = GymSimulator(partial(gymnasium.make, "MountainCarContinuous-v0"))
    state = simulator.snapshot(env)
    observations, valid, ended = simulator.rollout(state, V)

A planner needs to put the environment into the current state of the real one. How that is done is found out at
construction, and whether it is exact is measured there (see `gym_check`):

1. by the user's `snapshot` and `restore`, where given;
2. by methods of the environment made for it, such as `get_state` and `set_state`;
3. by reading and writing the environment's attributes, which holds for most that are written in Python.

The last two are used only if they are exact. The speed is that of the environment's own `step`, times the number of
worker processes; the simulators made for one engine are far faster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhirl.simulators.checks import check_controls
from rhirl.simulators.gym_check import (
    Exactness,
    InexactSimulatorError,
    InexactSimulatorWarning,
    check_exactness,
    global_random_numbers,
)
from rhirl.simulators.gym_model import EnvModel, Recipe, RolloutError
from rhirl.simulators.gym_spaces import ToAction
from rhirl.simulators.gym_states import Env
from rhirl.simulators.gym_workers import Workers, default_count, why_not_sendable
from rhirl.simulators.protocol import Rollout, State

__all__ = ["GymSimulator", "InexactSimulatorError", "InexactSimulatorWarning", "RolloutError"]

STATE_METHODS = (
    ("get_state", "set_state"),
    ("_get_state", "_set_state"),
    ("get_env_state", "set_env_state"),
    ("save_state", "load_state"),
    ("save_state", "restore_state"),
    ("clone_state", "restore_state"),
    ("snapshot", "restore"),
    ("state_dict", "load_state_dict"),
)


class GymSimulator:
    """A Gymnasium environment that can be put into any of its states and rolled out.

    Time limits are ignored, here and in rollouts. After the step that ends the task (`terminated`) a rollout
    repeats its last observation: an environment is never stepped past its end. Where the environment is random,
    rollouts draw from `seed` and not from the real environment's generator, whose future no planner may know.
    One simulator serves one planner: it is not made for use from several threads at once.

    Args:
        make_env: Builds a new environment at each call.
        snapshot: Returns the state of the unwrapped environment: numbers, strings, arrays, and lists, tuples and
            dictionaries of them. The environment's random generators are kept without its help.
        restore: Puts the unwrapped environment into a state that `snapshot` returned.
        observe: Returns the observation of the state the unwrapped environment is in; found by itself if the
            environment has a method like `_get_obs` or holds its observation in an attribute.
        to_action: Turns one control (m,) in [-1, 1] into an action. By default a `Box` is scaled, and a
            `Discrete` takes one control, whose range is cut into n equal bins.
        control_dim: Number of controls m; to be given with `to_action`.
        workers: Number of worker processes; 0 runs everything in this process, None is one per core.
        check: Whether to measure at construction that restoring is exact.
        check_steps: Length of the episodes that the check replays.
        strict: Whether an inexact `restore` given by the user is an error instead of a warning.
    """

    exact: bool | None
    """Whether restoring is exact; None without a check."""
    restore_error: float | None
    """Largest difference of an observation that the check saw; 0 if exact."""

    def __init__(
        self,
        make_env: Callable[[], Env],
        *,
        snapshot: Callable[[Any], Any] | None = None,
        restore: Callable[[Any, Any], None] | None = None,
        observe: Callable[[Any], Any] | None = None,
        to_action: ToAction | None = None,
        control_dim: int | None = None,
        workers: int | None = None,
        check: bool = True,
        check_steps: int = 48,
        strict: bool = False,
    ) -> None:
        if (snapshot is None) != (restore is None):
            raise ValueError("snapshot and restore belong together: pass both or neither")
        recipe = Recipe(make_env, snapshot, restore, observe, to_action, control_dim)
        count = _worker_count(workers, recipe)
        self.exact, self.restore_error = None, None
        with global_random_numbers():
            if check:
                self._model, outcome = _first_exact(recipe, check_steps, strict)
                self.exact, self.restore_error = outcome.exact, outcome.error
            else:
                self._model = next(_models(recipe))
        self._workers = Workers(self._model.recipe, count)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation x."""
        return self._model.observation_shape

    @property
    def control_dim(self) -> int:
        """Number of controls m."""
        return self._model.control_dim

    @property
    def workers(self) -> int:
        """Number of worker processes; 0 if rollouts run in this process."""
        return self._workers.count

    def to_action(self, control: NDArray[Any]) -> Any:
        """Return the action that a control v (m,) in [-1, 1] stands for: what to give to `env.step`."""
        return self._model.to_actions(self._finite(control))

    def reset(self, seed: int) -> State:
        """Return the state after the environment's own `reset(seed=seed)`."""
        return self._model.reset(seed)

    def observe(self, state: State) -> NDArray[Any]:
        """Return the observation of a state."""
        self._model.dynamics(state)
        return np.array(state["observation"])

    def step(self, state: State, control: NDArray[Any], seed: int = 0) -> State:
        """Execute one control v (m,); a state in which the task has ended does not change any more."""
        return self._model.step(state, self._finite(control), _random_keys(seed, 1)[0])

    def terminated(self, state: State) -> bool:
        """Tell whether the step that led to this state ended the task.

        Gymnasium tells that only once, when the step is made: a snapshot counts as not terminated.
        """
        self._model.dynamics(state)
        return bool(state["terminated"])

    def rollout(self, state: State, controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Roll V (M, K, m) out from one state; one with a control or observation that is not finite is invalid."""
        V = check_controls(np.clip(controls, -1, 1), self.control_dim)
        self._model.dynamics(state)
        here = {part: np.asarray(leaf) for part, leaf in state.items()}
        runner = self._workers if self.workers and len(V) else self._model
        return runner.roll(here, V, _random_keys(seed, len(V)))

    def snapshot(self, env: Env) -> State:
        """Read the state of a running environment without touching it."""
        return self._model.snapshot(env)

    def restore(self, env: Env, state: State) -> None:
        """Put a running environment into a state, its random generators included."""
        self._model.restore(env, state)

    def close(self) -> None:
        """End the worker processes; they also end with the simulator and with this process."""
        self._workers.close()

    def __enter__(self) -> GymSimulator:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _finite(self, control: NDArray[Any]) -> NDArray[np.float32]:
        v = check_controls(np.clip(control, -1, 1)[None, None], self.control_dim)[0, 0]
        if not np.isfinite(v).all():
            raise ValueError(f"a control must be finite to be executed, not {v}")
        return v


def _models(recipe: Recipe) -> Iterator[EnvModel]:
    """Build the model in every way its state may be read and set, the most explicit one first."""
    if recipe.snapshot is not None:
        yield EnvModel(recipe)
        return
    by_attributes = EnvModel(recipe)
    base = by_attributes.env.unwrapped
    for reader, writer in STATE_METHODS:
        if callable(getattr(base, reader, None)) and callable(getattr(base, writer, None)):
            methods = recipe._replace(snapshot=methodcaller(reader), restore=partial(_call, writer))
            # Right names that mean something else here are no error: the attributes are still to be tried.
            with suppress(Exception):
                yield EnvModel(methods)
    yield by_attributes


def _first_exact(recipe: Recipe, steps: int, strict: bool) -> tuple[EnvModel, Exactness]:
    """Return the first model that restores exactly; of the user's own functions, warn if they do not."""
    by_user = recipe.snapshot is not None
    for model in _models(recipe):
        try:
            outcome = check_exactness(model, steps)
        except InexactSimulatorError as error:
            if by_user:
                raise
            message = str(error)
            continue
        if outcome.exact:
            return model, outcome
        message = f"{model.name} cannot be restored exactly (error up to {outcome.error:.2g}): {outcome.finding}"
    if strict or not by_user:
        raise InexactSimulatorError(message)
    warnings.warn(
        f"{message}. Rollouts from a snapshot will differ that much", InexactSimulatorWarning, stacklevel=3
    )
    return model, outcome


def _worker_count(workers: int | None, recipe: Recipe) -> int:
    """Return how many worker processes to use, or say why there cannot be any."""
    count = default_count() if workers is None else workers
    if count < 0:
        raise ValueError(f"the number of workers must be 0 or more, not {workers}")
    if count and (reason := why_not_sendable(recipe)):
        advice = (
            f"worker processes cannot import the functions of this simulator: {reason}. Define them "
            "at the top level of a module (no lambda, no function inside a function), or pass workers=0"
        )
        if workers is not None:
            raise ValueError(advice)
        warnings.warn(f"rollouts run in this process, because {advice} to say so", stacklevel=3)
        return 0
    return count


def _random_keys(seed: int, M: int) -> NDArray[np.uint64]:
    """Return the random key (M, 2) of each rollout: from the seed alone, whichever process uses it."""
    return np.random.default_rng(seed).integers(2**64, size=(M, 2), dtype=np.uint64)


def _call(method: str, owner: Any, value: Any) -> None:
    getattr(owner, method)(value)
