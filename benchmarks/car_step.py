"""Measure what one control step of CarRacing from images costs, on whatever processor or GPU JAX finds.

    python benchmarks/car_step.py --out results/bench/car-step.json
    python benchmarks/car_step.py --threads 1 --out results/bench/car-step-1.json

First the cost network alone, a frame at a time, in the variants that were considered: colour or grey, 96, 48 or 32
pixels a side, the first stride, half precision, wider layers, blocks or all at once. Then whole control steps:
simulate, draw, score, weigh (acting), and the same with an update of the cost (learning). Times are wall-clock
milliseconds, with the processor's own beside them for machines that are shared.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jax import Array

from rhirl.costs import CNN, Cost, Pixels
from rhirl.demos import Metadata, from_episodes
from rhirl.learning import RHIRL, Config, Controller
from rhirl.machine import surroundings
from rhirl.planning import Planner
from rhirl.simulators.car.render import View
from rhirl.simulators.car_racing import CarRacingSimulator


class Variant(NamedTuple):
    """A network that was considered."""

    name: str
    shape: tuple[int, int, int]
    channels: tuple[int, ...] = (16, 32, 32, 32)
    strides: tuple[int, ...] = (3, 2, 2, 2)
    dtype: Any = jnp.float32


class Setting(NamedTuple):
    """A planner that was considered."""

    name: str
    view: View
    M: int
    K: int


GREY = View(2, grey=True, looks=8)
VARIANTS = (
    Variant("96 colour, strides 2, 32-64-128-128", (96, 96, 3), (32, 64, 128, 128), (2, 2, 2, 2)),
    Variant("96 colour, strides 2", (96, 96, 3), strides=(2, 2, 2, 2)),
    Variant("96 colour", (96, 96, 3)),
    Variant("96 grey", (96, 96, 1)),
    Variant("84 x 60 colour (cropped)", (84, 60, 3)),
    Variant("48 colour", (48, 48, 3)),
    Variant("48 grey", (48, 48, 1)),
    Variant("48 grey, strides 2", (48, 48, 1), strides=(2, 2, 2, 2)),
    Variant("48 grey, bfloat16", (48, 48, 1), dtype=jnp.bfloat16),
    Variant("32 grey", (32, 32, 1)),
)
SETTINGS = (
    Setting("as published: 96 x 96 in colour", View(), 200, 15),
    Setting("as published, 48 x 48 in grey", GREY, 200, 15),
    Setting("a third of the horizon", GREY, 200, 5),
    Setting("fewer samples", GREY, 64, 15),
    Setting("recommended", GREY, 64, 10),
)


def main(
    out: Path | None = None,
    threads: int | None = None,
    repetitions: int = 5,
    frames: int = 1024,
    quick: bool = False,
) -> None:
    """Measure the networks and the control steps.

    Args:
        out: Where to keep the result.
        threads: Threads of the simulator; 1 also keeps XLA to one.
        repetitions: How often each thing is timed; the median counts.
        frames: Frames per call when networks are timed.
        quick: Leave out the largest networks and planners.
    """
    if threads == 1:
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    variants, settings = (VARIANTS[6:], SETTINGS[1:]) if quick else (VARIANTS, SETTINGS)
    result: dict[str, Any] = {
        "command": "python benchmarks/car_step.py" + (f" --threads {threads}" if threads else ""),
        "backend": jax.default_backend(),
        "device": str(jax.devices()[0].device_kind),
        "networks": [_time_variant(variant, frames, repetitions) for variant in variants]
        + [_time_cost(shape, frames, repetitions) for shape in ((48, 48, 1), (96, 96, 3))],
        "steps": [_time_setting(setting, threads, repetitions) for setting in settings],
        **surroundings(),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n")


def _time_variant(variant: Variant, frames: int, repetitions: int) -> dict[str, Any]:
    """Time a plain network, scored and differentiated all at once."""
    sizes = [variant.shape[2], *variant.channels]
    keys = jax.random.split(jax.random.key(0), len(variant.channels))
    kernels = [
        0.1 * jax.random.normal(k, (3, 3, a, b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]

    def value(kernels: Sequence[Array], x: Array) -> Array:
        z = (x.astype(jnp.float32) * (2 / 255) - 1).astype(variant.dtype)
        for kernel, stride in zip(kernels, variant.strides, strict=True):
            z = jax.lax.conv_general_dilated(
                z,
                kernel.astype(variant.dtype),
                (stride, stride),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
            z = jax.nn.relu(z)
        return z.astype(jnp.float32).sum()

    x = _pictures(frames, variant.shape)
    score, learn = jax.jit(value), jax.jit(jax.grad(value))
    return {
        "network": variant.name,
        "score": _per_frame(lambda: score(kernels, x), frames, repetitions),
        "learn": _per_frame(lambda: learn(kernels, x), frames, repetitions),
    }


def _time_cost(shape: tuple[int, int, int], frames: int, repetitions: int) -> dict[str, Any]:
    """Time the package's own cost, which scores in blocks."""
    cost, x = Cost(Pixels.of(shape), CNN.of(jax.random.key(0), shape[2], (64, 64))), _pictures(frames, shape)
    score = jax.jit(lambda network, x: Cost(cost.normalise, network)(x))
    learn = jax.jit(jax.grad(lambda network, x: Cost(cost.normalise, network)(x).sum()))
    return {
        "network": f"rhirl.costs.CNN, {shape[0]} {'grey' if shape[2] == 1 else 'colour'}",
        "score": _per_frame(lambda: score(cost.network, x), frames, repetitions),
        "learn": _per_frame(lambda: learn(cost.network, x), frames, repetitions),
    }


def _time_setting(setting: Setting, threads: int | None, repetitions: int) -> dict[str, Any]:
    """Time rollouts, acting and learning, one control step each, with frames of real driving."""
    simulator = CarRacingSimulator(view=setting.view, threads=threads)
    controls = np.tile(np.array([0.02, 0.3], np.float32), (60, 1))
    meta = Metadata("car_racing", "CarRacing-v3", 0.0, (0.0,) * 4, tuple(range(4)), "straight on")
    demos = from_episodes([simulator.play(seed, controls) for seed in meta.seeds], meta, horizon=60)
    planner = Planner(K=setting.K, M=setting.M, beta=0.2, ess=0.1, knots=min(5, setting.K))
    learner = RHIRL(simulator, demos, Config(planner=planner, parallel=1, hidden=(64, 64), iterations=10**9))
    controller = Controller(simulator, learner.learned_cost, planner)
    state = learner.state.systems[0]
    V = np.random.default_rng(0).uniform(-1, 1, (setting.M, setting.K, 2)).astype(np.float32)

    def learn() -> Any:
        learner.step()
        return learner.state.network

    return {
        "setting": setting.name,
        "view": asdict(setting.view),
        "M": setting.M,
        "K": setting.K,
        "frames": setting.M * (setting.K + 1),
        "rollouts": _times(lambda: simulator.rollout(state, V), repetitions),
        "act": _times(lambda: controller.act(state), repetitions),
        "learn": _times(learn, repetitions),
    }


def _pictures(frames: int, shape: tuple[int, int, int]) -> Array:
    return jnp.asarray(np.random.default_rng(0).integers(0, 256, (frames, *shape), np.uint8))


def _per_frame(work: Callable[[], Any], frames: int, repetitions: int) -> dict[str, float]:
    return {
        name.replace("ms", "us"): round(1e3 * value / frames, 2)
        for name, value in _times(work, repetitions).items()
    }


def _times(work: Callable[[], Any], repetitions: int) -> dict[str, float]:
    """Return the medians of wall-clock and processor time, in milliseconds, after one run to compile."""
    jax.block_until_ready(work())
    times = []
    for _ in range(repetitions):
        wall, cpu = time.perf_counter(), time.process_time()
        jax.block_until_ready(work())
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall_s, cpu_s = np.median(times, axis=0)
    return {"ms": round(1e3 * float(wall_s), 2), "cpu_ms": round(1e3 * float(cpu_s), 2)}


if __name__ == "__main__":
    tyro.cli(main)
