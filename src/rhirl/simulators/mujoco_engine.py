"""Two ways to roll M control sequences out through MuJoCo, on all cores, with the same bits as Gymnasium.

`BatchEngine` hands the whole rollout to `mujoco.batch`, without Python in between. It serves every observation
made of what `mj_step` computes. `ThreadEngine` drives one simulation per Python thread (MuJoCo releases the GIL)
and calls `mj_rnePostConstraint` after every environment step, as Gymnasium does: contact forces are computed from
the contacts of the integrator's last stage, which a batch does not keep. Both take

    start (d,) the integration state,  actions (M, K, m) in actuator units,  forces (M, K, nv) or None

and return the values of the recorded fields, (M, K, size) each, in buffers that the next run overwrites, with a
mask (M,) of the simulations that diverged. MuJoCo silently resets a diverged simulation and goes on with finite
numbers: only its warning counters tell.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from rhirl.simulators.mujoco_parameters import Parameters, scale_models
from rhirl.simulators.mujoco_state import INTEGRATION

# What mj_rnePostConstraint computes, and mj_step does not.
POST_CONSTRAINT = frozenset({"cacc", "cfrc_int", "cfrc_ext"})
# In place of a field: the whole observation, computed by an environment's own `_get_obs`.
OBSERVATION = "observation"
INTEGRATORS = {
    "Euler": mujoco.mjtIntegrator.mjINT_EULER,
    "RK4": mujoco.mjtIntegrator.mjINT_RK4,
    "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
}

Floats = NDArray[np.float64]


class Physics(NamedTuple):
    """What an engine simulates."""

    model: mujoco.MjModel
    frame_skip: int
    """Substeps per environment step."""
    fields: tuple[str, ...]
    """The MjData fields to record after every environment step."""
    parameters: Parameters = ()
    """Scale factors of the model, per simulation."""


class Records(NamedTuple):
    """What a run leaves: the values of each field (M, K, size), and which simulations diverged (M,)."""

    values: Mapping[str, Floats]
    diverged: NDArray[np.bool_]


class Engine(Protocol):
    """What rolls control sequences out; M and K may differ from call to call."""

    def run(self, start: Floats, actions: NDArray[Any], forces: Floats | None) -> Records:
        """Roll M sequences out from one state."""
        ...


def make_engine(physics: Physics, threads: int, make_observer: Callable[[], Any] | None = None) -> Engine:
    """Choose the engine that can record the fields exactly.

    `make_observer` makes an environment whose `_get_obs` is recorded in place of fields.
    """
    if make_observer is None and not POST_CONSTRAINT & set(physics.fields):
        return BatchEngine(physics, threads)
    return ThreadEngine(physics, [_make_worker(physics, make_observer) for _ in range(threads)])


class BatchEngine:
    """A rollout as one call of `mujoco.batch`, on `threads` threads."""

    def __init__(self, physics: Physics, threads: int) -> None:
        self._physics, self._threads = physics, threads
        data = mujoco.MjData(physics.model)
        self._shapes = {name: getattr(data, name).shape for name in physics.fields}
        self._batch: Batch | None = None
        self._buffers = _Buffers()

    def run(self, start: Floats, actions: NDArray[Any], forces: Floats | None) -> Records:
        """Roll M sequences out from one state."""
        model, frame_skip, fields, parameters = self._physics
        M, K, m = actions.shape
        substeps = K * frame_skip
        if self._batch is None or self._batch.nsim < M:
            self._batch = Batch(model, M, self._threads)
            scale_models(self._batch, parameters)
        batch = self._batch
        batch.state[:M] = start
        batch.warning[:M] = 0

        inputs = mujoco.mjtState.mjSTATE_CTRL.value
        controls = self._buffers("controls", (M, K, frame_skip, m + (0 if forces is None else model.nv)))
        controls[..., :m] = actions[:, :, None]
        if forces is not None:
            inputs |= mujoco.mjtState.mjSTATE_QFRC_APPLIED.value
            controls[..., m:] = forces[:, :, None]

        records = {name: self._buffers(name, (M, substeps, *shape)) for name, shape in self._shapes.items()}
        with quiet():
            batch.rollout(
                substeps,
                controls.reshape(M, substeps, -1),
                control_spec=inputs,
                record=fields,
                ids=np.arange(M, dtype=np.int32),
                out=records,
            )
        last = slice(frame_skip - 1, None, frame_skip)
        values = {name: record.reshape(M, substeps, -1)[:, last] for name, record in records.items()}
        return Records(values, batch.warning[:M, :, 1].any(axis=1))


class ThreadEngine:
    """A rollout as a loop over sequences and environment steps, in one thread per worker."""

    def __init__(self, physics: Physics, workers: list[_Worker]) -> None:
        self._physics, self._workers = physics, workers
        self._pool = ThreadPoolExecutor(len(workers), "mujoco")
        self._models: Batch | None = None
        self._buffers = _Buffers()

    def run(self, start: Floats, actions: NDArray[Any], forces: Floats | None) -> Records:
        """Roll M sequences out from one state."""
        M, K, _ = actions.shape
        if self._physics.parameters and (self._models is None or self._models.nsim < M):
            self._models = Batch(self._physics.model, M, 1)
            scale_models(self._models, self._physics.parameters)
        first = self._workers[0]
        sizes = {name: view.size for name, view in first.views.items()}
        if first.observe is not None:
            sizes[OBSERVATION] = first.observe().size
        records = Records(
            {name: self._buffers(name, (M, K, size)) for name, size in sizes.items()}, np.zeros(M, bool)
        )

        # Threads take the next sequence from one iterator, so that none waits for a slow one. Every sequence starts
        # from the same full state: who simulates it makes no difference.
        sequences = iter(range(M))
        with quiet():
            work = (sequences, start, actions, forces, records)
            others = [self._pool.submit(self._drive, worker, *work) for worker in self._workers[1:]]
            try:
                self._drive(self._workers[0], *work)
            finally:
                for _ in sequences:  # an interrupted run leaves nothing for the others to do
                    pass
                wait(others)
            for other in others:
                other.result()
        return records

    def _drive(
        self,
        worker: _Worker,
        sequences: Iterator[int],
        start: Floats,
        actions: NDArray[Any],
        forces: Floats | None,
        records: Records,
    ) -> None:
        model, data, observe = worker.model, worker.data, worker.observe
        frame_skip, step, finish = self._physics.frame_skip, mujoco.mj_step, mujoco.mj_rnePostConstraint
        controls, applied, warnings = data.ctrl, data.qfrc_applied, data.warning.number
        for i in sequences:
            if self._models is not None:
                self._models.get_model(i, model)
            mujoco.mj_setState(model, data, start, INTEGRATION)
            warnings[:] = 0
            copies = [(records.values[name][i], view) for name, view in worker.views.items()]
            for k, action in enumerate(actions[i]):
                controls[:] = action
                if forces is not None:
                    applied[:] = forces[i, k]
                step(model, data, frame_skip)
                finish(model, data)
                for values, view in copies:
                    values[k] = view
                if observe is not None:
                    records.values[OBSERVATION][i, k] = observe()
            records.diverged[i] = warnings.any()


class _Worker(NamedTuple):
    """The simulation that one thread drives, and where to read what is recorded of it."""

    model: mujoco.MjModel
    data: mujoco.MjData
    views: Mapping[str, Floats]
    observe: Callable[[], Floats] | None


def _make_worker(physics: Physics, make_observer: Callable[[], Any] | None) -> _Worker:
    # Where models differ between simulations, each thread writes them into a copy of its own.
    model = copy.copy(physics.model) if physics.parameters else physics.model
    if make_observer is not None:
        env = make_observer()
        return _Worker(model, env.data, {}, env._get_obs)
    data = mujoco.MjData(model)
    return _Worker(model, data, {name: getattr(data, name).reshape(-1) for name in physics.fields}, None)


def bare_batch(physics: Physics, threads: int, start: Floats, actions: NDArray[Any]) -> Callable[[], object]:
    """Prepare the same physics with `mujoco.batch` alone, stepping and recording qpos and qvel: for benchmarks."""
    substeps = actions.shape[1] * physics.frame_skip
    controls = np.repeat(actions, physics.frame_skip, axis=1).astype(np.float64)
    batch = Batch(physics.model, len(actions), threads)
    out = batch.rollout(substeps, controls, record=("qpos", "qvel"))

    def run() -> object:
        batch.state[:] = start
        return batch.rollout(substeps, controls, record=("qpos", "qvel"), out=out)

    return run


def replan(physics: Physics, integrator: str | None, substeps: int | None, parameters: Parameters) -> Physics:
    """Return other physics to plan with, whose environment step is as long; None keeps what there is."""
    model = copy.copy(physics.model)
    if integrator is not None:
        if integrator not in INTEGRATORS:
            raise ValueError(f"integrator must be one of {', '.join(INTEGRATORS)}, not {integrator!r}")
        model.opt.integrator = INTEGRATORS[integrator]
    if substeps is None:
        substeps = physics.frame_skip
    if substeps < 1:
        raise ValueError(f"substeps must be at least 1, not {substeps}")
    if substeps != physics.frame_skip:
        model.opt.timestep *= physics.frame_skip / substeps
    return physics._replace(model=model, frame_skip=substeps, parameters=parameters)


class _Buffers:
    """Arrays that are made once and used again as long as the shape stays."""

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}

    def __call__(self, name: str, shape: tuple[int, ...]) -> Floats:
        array = self._arrays.get(name)
        if array is None or array.shape != shape:
            array = self._arrays[name] = np.empty(shape)
        return array


@contextmanager
def quiet() -> Iterator[None]:
    """Keep MuJoCo from printing and from leaving a log file behind; divergence is reported otherwise."""
    before, silent = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
    silent.logto_console = silent.logto_file = False
    silent.set()
    try:
        yield
    finally:
        before.set()
