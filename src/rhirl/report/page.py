"""The report of a run: one HTML file that needs nothing else, on screen, on a phone or in an archive."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from rhirl.costs import load_cost
from rhirl.demos import run_episode
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.checkpoint import write_atomically
from rhirl.experiments.evaluate import load_agent, references
from rhirl.experiments.presets import from_dict
from rhirl.experiments.run import RunDirectory, RunError
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.report import pendulum
from rhirl.report.figures import data_uri, learning_curve, planner_health, png

SHOWN_EPISODES = 6
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --muted: #5c6670; --line: #d9dee3; --ground: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --muted: #9aa4ad; --line: #343c44; --ground: #14181c; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 0 auto;
       padding: 2rem 1rem 4rem; max-width: 46rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
p.lead, figcaption, td.why { color: var(--muted); }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); }
pre { overflow-x: auto; font-size: .85rem; border: 1px solid var(--line); padding: .75rem; border-radius: 6px; }
"""


def write_report(run: RunDirectory) -> Path:
    """Draw everything there is to see of a run and write `report.html` into it."""
    config, metrics = run.config(), run.read_metrics()
    if not run.cost.exists():
        raise RunError(
            f"{run.path} has no cost yet; train it first, or go on with: rhirl train --resume --out {run.path}"
        )
    reference = references(config.task)
    level = f"{config.noise:g}"
    curve = learning_curve(metrics, reference["expert"][level], reference["random"][level])
    health = planner_health(metrics, from_dict(config.hyper).planner.M)
    sections = [
        _evaluations(run),
        _picture(
            "How it learned", png(curve), "Return in the plain environment while learning, on validation seeds."
        ),
        *_task_pictures(run),
        _picture(
            "Was the planner healthy?",
            png(health),
            "Left: how many of the sampled plans carry weight; near 1, planning is just picking the best one. "
            "Right: how much the learned cost tells the samples apart.",
        ),
        "<h2>Settings</h2><pre>" + html.escape(json.dumps(config.hyper, indent=1)) + "</pre>",
    ]
    title = f"{config.task}: a cost learned from {config.episodes} demonstrations"
    lead = f"{config.method}, preset {config.preset}, control noise σ = {level}, seed {config.seed}"
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>{html.escape(title)}</h1>"
        f'<p class="lead">{html.escape(lead)}</p>{"".join(sections)}</body></html>\n'
    )
    path = run.path / "report.html"
    write_atomically(path, page.encode())
    return path


def _evaluations(run: RunDirectory) -> str:
    """Tabulate `eval/*.json`."""
    results = [json.loads(path.read_text()) for path in sorted((run.path / "eval").glob("*.json"))]
    if not results:
        return f"<h2>Evaluation</h2><p>Not evaluated yet: <code>rhirl eval {html.escape(run.path.name)}</code></p>"
    rows = "".join(
        f"<tr><td>{r['noise']:g}</td><td>{r['episodes']}</td>"
        f"<td>{r['return_mean']:.1f} ± {r['return_std']:.1f}</td>"
        f"<td>{r['expert_return']:.1f}</td><td>{r['random_return']:.1f}</td><td>{r['score']:.3f}</td>"
        f"<td>{r['ratio']:.3f}</td></tr>"
        for r in results
    )
    return (
        '<h2>Evaluation</h2><div class="scroll"><table><tr><th>noise σ</th><th>episodes</th><th>return</th>'
        f"<th>expert</th><th>random</th><th>score</th><th>ratio</th></tr>{rows}</table></div>"
        "<p>Score 0 is a random agent, 1 the expert. Episodes start from seeds that training never saw.</p>"
    )


def _task_pictures(run: RunDirectory) -> list[str]:
    """Pictures only this task has."""
    if run.config().task != "pendulum":
        return []
    task, agent = load_agent(run)
    noise = run.config().noise
    env, expert = task.make_env(), expert_agent(task)
    seeds = episode_seeds(VALIDATION, 0, SHOWN_EPISODES)
    shown = {
        name: [run_episode(env, who, horizon=task.T, noise=noise, seed=seed).observations for seed in seeds]
        for name, who in (("expert", expert), ("learned", agent))
    }
    figure = pendulum.cost_map(load_cost(run.cost), shown["expert"], shown["learned"])
    lowest = min(range(SHOWN_EPISODES), key=lambda i: float(shown["expert"][i][0, 0]))  # the longest swing-up
    moving = pendulum.animation(shown["expert"][lowest], shown["learned"][lowest])
    return [
        _picture(
            "The learned cost",
            png(figure),
            "Dark is cheap. The demonstrations held only states; that upright and still is good, and which way "
            f"leads there, was learned. Lines: {SHOWN_EPISODES} episodes from the same starts.",
        ),
        _picture("In motion", moving, "The expert and the learned controller from the same start.", "image/gif"),
    ]


def _picture(title: str, content: bytes, caption: str, kind: str = "image/png") -> str:
    return (
        f'<h2>{html.escape(title)}</h2><figure><img alt="{html.escape(title)}" src="{data_uri(content, kind)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def summary(result: dict[str, Any]) -> str:
    """Say an evaluation in one sentence."""
    return (
        f"{result['task']} at noise σ = {result['noise']:g}: return {result['return_mean']:.1f} "
        f"± {result['return_std']:.1f} over {result['episodes']} episodes; expert {result['expert_return']:.1f}, "
        f"random {result['random_return']:.1f}; score {result['score']:.3f}, ratio {result['ratio']:.3f}"
    )
