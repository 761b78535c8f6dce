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

ROOT = Path(__file__).parent.parent / "results/runs/pendulum"
NOISES, SEEDS, EPISODES = (0.0, 0.2, 0.5), range(5), 50
PRESETS = {"default": "rhirl", "paper": "rhirl-paper"}


def main(table: bool = False) -> None:
    """Train, evaluate, and print the table in Markdown."""
    for preset, folder in PRESETS.items():
        for noise in NOISES:
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
    from rhirl.tasks import get_task

    results = [
        json.loads(path.read_text()) for path in sorted(folder.glob(f"seed*/eval/noise{noise:g}-seed*.json"))
    ]
    if not results:
        return f"| {preset} | {noise:g} | | | | | | |"
    mean = {key: np.array([r[key] for r in results]) for key in ("score", "return_mean", "ratio")}
    first = results[0]
    return (
        f"| {preset} | {noise:g} | {mean['score'].mean():.3f} ± {mean['score'].std():.3f} "
        f"| {mean['return_mean'].mean():.1f} ± {mean['return_mean'].std():.1f} "
        f"| {first['expert_return']:.1f} | {first['random_return']:.1f} | {mean['ratio'].mean():.3f} "
        f"| {get_task('pendulum').paper_ratio('rhirl', noise):.2f} |"
    )


if __name__ == "__main__":
    tyro.cli(main)
