"""How should a run act? Let it act with its cost under other settings, in validation episodes.

python benchmarks/acting.py results/runs/walker2d/rhirl/noise0/seed0 --set deploy.beta=0.005 --episodes 4

Prints a line of returns for the expert, for the run as it is configured, and for each of the settings, which are
those of `rhirl train`, one after the other behind `--set`; what belongs together is joined by commas. Nothing
here is a score.
"""

from __future__ import annotations

from pathlib import Path

import tyro

from rhirl.experiments.agents import expert_agent
from rhirl.experiments.evaluate import evaluate
from rhirl.experiments.methods import get_method
from rhirl.experiments.presets import choose
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.learning import Config
from rhirl.tasks import get_task


def main(
    path: tyro.conf.Positional[Path],
    /,
    set: tuple[str, ...] = (),
    episodes: int = 4,
    skip: int = 0,
    plain: bool = True,
) -> None:
    """Act as the run says if `plain`, and with each of the settings; `skip` leaves the first episodes out."""
    run = RunDirectory(path)
    asked = run.config()
    task = get_task(asked.task)
    seeds = episode_seeds(VALIDATION, asked.seed, skip + episodes)[skip:]
    agents = {"expert": expert_agent(task, asked.noise)}
    for settings in ((),) * plain + tuple(tuple(one.split(",")) for one in set):
        config = choose(Config, {"own": asked.hyper}, task.name, "own", settings)
        agents[" ".join(settings) or "as it is"] = get_method(asked.method).load(task, run, config, asked.seed)
    for name, agent in agents.items():
        returns = evaluate(task, agent, seeds, asked.noise)
        row = [round(total) for total in returns.tolist()]
        print(
            f"{task.name} noise {asked.noise:g} seed {asked.seed} {name}: {row} mean {returns.mean():.0f}",
            flush=True,
        )


if __name__ == "__main__":
    tyro.cli(main)
