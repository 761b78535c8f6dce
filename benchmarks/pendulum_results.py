"""Make the Pendulum numbers of the README: seeds 0–4, three noise levels, both presets, 50 episodes each.

    python benchmarks/pendulum_results.py          train and evaluate what is missing, then print the table
    python benchmarks/pendulum_results.py --table  only print the table

Runs lie under results/runs/pendulum/<rhirl or rhirl-paper>/noise<σ>/seed<k>, trimmed to what evaluation needs.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import tyro

from rhirl.experiments import RunDirectory, evaluate_run, train
from rhirl.experiments.display import Display, learning
from rhirl.experiments.plan import plan_run
from rhirl.tasks import get_task

ROOT = Path(__file__).parent.parent / "results/runs/pendulum"
NOISES, SEEDS, EPISODES = (0.0, 0.2, 0.5), range(5), 50
PRESETS = {"default": "rhirl", "paper": "rhirl-paper"}


def main(table: bool = False, noises: tuple[float, ...] = NOISES) -> None:
    """Train and evaluate what is missing at some noise levels, and print the whole table in Markdown."""
    for preset, folder in PRESETS.items():
        for noise in noises:
            for seed in SEEDS:
                run = RunDirectory(ROOT / folder / f"noise{noise:g}" / f"seed{seed}")
                if not table and not (run.path / "eval").exists():
                    _train_and_evaluate(run, preset, noise, seed)
    print(
        "| preset | noise σ | score | return | expert | random | ratio | the paper's ratio |\n" + "|---" * 8 + "|"
    )
    for preset, folder in PRESETS.items():
        for noise in NOISES:
            print(_row(preset, ROOT / folder / f"noise{noise:g}", noise))


def _train_and_evaluate(run: RunDirectory, preset: str, noise: float, seed: int) -> None:
    config = plan_run("pendulum", noise=noise, seed=seed, preset=preset)
    with Display(f"pendulum {preset} σ={noise:g} seed {seed}", learning) as display:
        train(run, config, resume=run.checkpoints.exists(), show=display)
    evaluate_run(run, episodes=EPISODES, seed=seed)
    shutil.rmtree(run.checkpoints)


def _row(preset: str, folder: Path, noise: float) -> str:
    results = [
        json.loads(path.read_text()) for path in sorted(folder.glob(f"seed*/eval/noise{noise:g}-seed*.json"))
    ]
    if not results:
        return f"| {preset} | {noise:g} | | | | | | |"

    def over_seeds(key: str, digits: int) -> str:
        values = np.array([result[key] for result in results])
        return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"

    return (
        f"| {preset} | {noise:g} | {over_seeds('score', 3)} | {over_seeds('return_mean', 1)} "
        f"| {over_seeds('expert_return', 1)} | {over_seeds('random_return', 1)} | {over_seeds('ratio', 3)} "
        f"| {get_task('pendulum').paper_ratio('rhirl', noise):.2f} |"
    )


if __name__ == "__main__":
    tyro.cli(main)
