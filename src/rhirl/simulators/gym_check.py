"""Is restoring exact? Replay a few short episodes and compare every bit.

Three fresh copies of the environment are given the same seeds and the same random controls. The first runs on
undisturbed, and so does the second: if they part, the environment has randomness nobody can restore. The third is
snapshotted half-way, the model rolls out from there, and then

    it goes on           and must still agree with the first: planning has not disturbed it
    it is restored       and must repeat what it did, bit for bit
    the model is put     into the same state and must do the same

Only observations and terminations are compared: they are all that a planner sees. Agreement over some random steps
is evidence, not proof: what happens later in an episode (a contact, a new level) has not been visited.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.random import mtrand
from numpy.typing import NDArray

from rhirl.simulators.gym_model import EnvModel
from rhirl.simulators.gym_states import Env

SEEDS = (0, 1, 2)


class InexactSimulatorError(RuntimeError):
    """An environment that cannot be put into a state exactly."""


class InexactSimulatorWarning(UserWarning):
    """The user's way to restore an environment is not exact."""


class Exactness(NamedTuple):
    """Outcome of the check."""

    exact: bool
    error: float
    """Largest difference of an observation seen; infinite if only the ends of the episodes differ."""
    finding: str
    """What went wrong, in words; empty when nothing did."""


class Trace(NamedTuple):
    """Observations of an episode (as the environment gave them) and whether it ended with the last."""

    observations: list[NDArray[Any]]
    terminated: bool


def check_exactness(model: EnvModel, steps: int) -> Exactness:
    """Replay episodes of `steps` steps and report the gravest kind of disagreement, with its largest error."""
    first, second, third = (model.recipe.make_env() for _ in range(3))
    if len({id(env.unwrapped) for env in (first, second, third, model.env)}) < 4:
        raise ValueError("make_env must build a new environment at each call, not return the same one again")
    rng = np.random.default_rng(0)
    errors: dict[str, float] = {}

    def compare(what: str, trace: Trace, reference: Trace) -> None:
        if (error := _difference(trace, reference)) is not None:
            errors[what] = max(error, errors.get(what, 0.0))

    with global_random_numbers() as used:
        for episode, seed in enumerate(SEEDS):
            V = rng.uniform(-1, 1, (steps, model.control_dim)).astype(np.float32)
            before = episode * steps // 4
            reference = _run(model, first, V, seed)
            compare("repeat", _run(model, second, V, seed), reference)
            head = _run(model, third, V[:before], seed)
            if head.terminated:
                continue
            tail = Trace(reference.observations[before + 1 :], reference.terminated)
            try:
                state = model.snapshot(third)
                shown = model.as_observation(head.observations[-1])
                compare("observe", Trace([state["observation"]], False), Trace([shown], False))
                model.roll(state, V[None, ::-1], np.zeros((1, 2), np.uint64))
                compare("disturb", _run(model, third, V[before:]), tail)
                model.restore(third, state)
                compare("restore", _run(model, third, V[before:]), tail)
                model.restore(model.env, state)
                compare("model", _run(model, model.env, V[before:]), tail)
            except Exception as error:
                cause = f"{type(error).__name__}: {error}"
                raise InexactSimulatorError(
                    f"{model.name}, put into its state, raised {cause}{_advice(model)}"
                ) from error
    for env in (first, second, third):
        env.close()
    return _verdict(model, errors, used)


def _run(model: EnvModel, env: Env, controls: NDArray[np.float32], seed: int | None = None) -> Trace:
    """Step an environment until the controls are used up or the task ends."""
    observations, terminated = [], False
    if seed is not None:
        observations.append(np.array(env.reset(seed=seed)[0]))
    for v in controls:
        observation, _, terminated, _, _ = env.step(model.to_actions(v))
        observations.append(np.array(observation))
        if terminated:
            break
    return Trace(observations, bool(terminated))


def _difference(trace: Trace, reference: Trace) -> float | None:
    """Return None where two traces agree in every bit, else the largest difference of their observations."""
    pairs = list(zip(trace.observations, reference.observations, strict=False))
    same_end = len(trace.observations) == len(reference.observations) and trace.terminated == reference.terminated
    if all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs):
        return None if same_end else np.inf
    with np.errstate(invalid="ignore"):
        gaps = [np.abs(a.astype(np.float64) - b.astype(np.float64)).max() for a, b in pairs]
    return float(np.nan_to_num(gaps, nan=np.inf).max())


def _verdict(model: EnvModel, errors: dict[str, float], global_draws: list[str]) -> Exactness:
    """Name the deepest cause among the disagreements: a system that does not repeat itself cannot be restored."""
    for what in ("repeat", "disturb", "restore", "model", "observe"):
        if what in errors:
            return Exactness(False, errors[what], _finding(model, what, global_draws))
    return Exactness(True, 0.0, "")


def _finding(model: EnvModel, what: str, global_draws: list[str]) -> str:
    if what == "repeat":
        drawn = f"random numbers ({' and '.join(global_draws)})" if global_draws else "other random numbers"
        return (
            "two copies of it given the same seed and the same actions part, so it depends on what reset(seed=…) "
            f"does not set: {drawn}, a clock, or something its copies share (a class attribute, a global). "
            "Let it draw from self.np_random, and keep its state in itself"
        )
    if what == "disturb":
        return (
            "after a snapshot and a rollout the running environment goes another way: snapshot must change nothing"
        )
    if what == "observe":
        return "the observation read from a snapshot is not the one the environment gave: pass observe="
    where = "the restored environment" if what == "restore" else "another copy put into the same state"
    return f"given the same controls, {where} does not do what the original did{_advice(model)}"


def _advice(model: EnvModel) -> str:
    if not model.states.by_attributes:
        return ""
    missed = model.states.missed(model.env)
    reason = f" ({missed} cannot be read from outside)" if missed else ""
    return (
        f". Its attributes are not all of its state{reason}: pass snapshot= and restore=, "
        "functions that read and set all that its next steps depend on"
    )


@contextmanager
def global_random_numbers() -> Iterator[list[str]]:
    """Note which global random generators are drawn from inside the block, and put them back afterwards."""
    numpy_generator = mtrand.get_bit_generator()
    numpy_state, python_state = numpy_generator.state, random.getstate()
    used: list[str] = []
    try:
        yield used
    finally:
        if repr(numpy_generator.state) != repr(numpy_state):
            used.append("NumPy's global ones")
        if random.getstate() != python_state:
            used.append("Python's global ones")
        numpy_generator.state = numpy_state
        random.setstate(python_state)
