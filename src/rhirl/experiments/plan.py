"""From what a person typed to what a run will do, with every mistake found before anything starts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rhirl.demos import DemonstrationError, Demonstrations, read_demos
from rhirl.experiments.methods import get_method
from rhirl.experiments.presets import choose, to_dict
from rhirl.experiments.run import RunConfig
from rhirl.tasks import get_task


def plan_run(
    task: str,
    method: str = "rhirl",
    noise: float = 0.0,
    seed: int = 0,
    preset: str = "default",
    demos: Path | None = None,
    episodes: int | None = None,
    overrides: Iterable[str] = (),
    force: bool = False,
    evaluations: int = 10,
) -> RunConfig:
    """Check every word and lay down the whole configuration of a run."""
    benchmark, how = get_task(task), get_method(method)
    hyper = choose(how.config, how.presets(benchmark), task, preset, overrides)
    found = find_demos(task, noise, demos, episodes, force=force, controls=how.needs_controls)
    return RunConfig(
        task=task,
        method=method,
        noise=noise,
        seed=seed,
        preset=preset,
        demos="bundled" if demos is None else str(demos),
        episodes=len(found),
        hyper=to_dict(hyper),
        evaluations=evaluations,
    )


def find_demos(
    task: str,
    noise: float,
    path: Path | None = None,
    episodes: int | None = None,
    *,
    force: bool = False,
    controls: bool = False,
) -> Demonstrations:
    """Read a run's demonstrations: the bundled ones, or those of a file; with their controls where needed."""
    benchmark = get_task(task)
    if path is None:
        return benchmark.demonstrations(noise, episodes=episodes, force=force, everything=controls)
    demos = read_demos(path, task=task, env_id=benchmark.env_id, force=force, everything=controls)
    if controls and demos.controls is None:
        raise DemonstrationError(
            f"{path}: holds no controls, which this method learns from; rhirl, firl and gail need states only"
        )
    return demos if episodes is None else demos.take(episodes)
