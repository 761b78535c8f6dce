"""The report of a run: one HTML file that needs nothing else, on screen, on a phone or in an archive."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any, NamedTuple

from rhirl.atomic import write_atomically
from rhirl.costs import load_cost
from rhirl.demos import run_episode
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.evaluate import load_agent, yardstick
from rhirl.experiments.presets import from_dict
from rhirl.experiments.run import RunDirectory, RunError
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.experiments.train import EVALUATION_EPISODES
from rhirl.report import pendulum
from rhirl.report.figures import data_uri, learning_curve, planner_health, png
from rhirl.tasks import get_task

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


class Picture(NamedTuple):
    """A picture of the report."""

    title: str
    content: bytes
    caption: str
    kind: str = "png"


def write_report(run: RunDirectory, pictures_to: Path | None = None) -> Path:
    """Draw everything there is to see of a run and write `report.html` into it.

    Args:
        run: The run.
        pictures_to: A folder in which to keep the pictures as files too.
    """
    config = run.config()
    if not run.cost.exists() and not run.policy.exists():
        raise RunError(f"{run.path} has learned nothing yet: train it first")
    pictures = [_learning(run), *_task_pictures(run), *_health(run)]
    if pictures_to is not None:
        pictures_to.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            name = f"{config.task}-{picture.title.lower().replace(' ', '-').strip('?')}.{picture.kind}"
            (pictures_to / name).write_bytes(picture.content)
    what = "a cost" if run.cost.exists() else "a policy"
    title = f"{config.task}: {what} learned from {config.episodes} demonstrations"
    lead = f"{config.method}, preset {config.preset}, control noise σ = {config.noise:g}, seed {config.seed}"
    settings = html.escape(json.dumps(config.hyper, indent=1))
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>{html.escape(title)}</h1>"
        f'<p class="lead">{html.escape(lead)}</p>{_evaluations(run)}{"".join(map(_figure, pictures))}'
        f"<h2>Settings</h2><pre>{settings}</pre></body></html>\n"
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
        "<p>Score 0 is a random agent, 1 the expert, in the same episodes, whose starts training never saw.</p>"
    )


def _learning(run: RunDirectory) -> Picture:
    """How the return grew, beside what the expert reaches in the same episodes."""
    config = run.config()
    task = get_task(config.task)
    seeds = episode_seeds(VALIDATION, config.seed, EVALUATION_EPISODES)
    by = yardstick(task, seeds, config.noise)
    figure = learning_curve(run.read_metrics(), by.expert, by.random)
    return Picture(
        "How it learned", png(figure), "Return in the plain environment, on validation seeds, while learning."
    )


def _health(run: RunDirectory) -> list[Picture]:
    """Whether the planner kept a choice, where there was one."""
    if "planner" not in run.config().hyper:
        return []
    figure = planner_health(run.read_metrics(), from_dict(run.config().hyper).planner.M)
    caption = (
        "Left: how many of the sampled plans carry weight; near 1, planning is just picking the best one. "
        "Right: how much the learned cost tells the samples apart."
    )
    return [Picture("Was the planner healthy?", png(figure), caption)]


def _task_pictures(run: RunDirectory) -> list[Picture]:
    """Pictures only this task has."""
    config = run.config()
    if config.task == "car_racing" and run.cost.exists():
        return _driving(run)
    if config.task != "pendulum":
        return []
    task, agent = load_agent(run)
    env, seeds = task.make_env(), episode_seeds(VALIDATION, 0, SHOWN_EPISODES)
    shown = {
        name: [run_episode(env, who, horizon=task.T, noise=config.noise, seed=seed).observations for seed in seeds]
        for name, who in (("expert", expert_agent(task, config.noise)), ("learned", agent))
    }
    lowest = min(range(SHOWN_EPISODES), key=lambda i: float(shown["expert"][i][0, 0]))  # the longest swing-up
    moving = pendulum.animation(shown["expert"][lowest], shown["learned"][lowest])
    motion = Picture("In motion", moving, "The expert and the learned controller from the same start.", "gif")
    if not run.cost.exists():
        return [motion]
    caption = (
        "Dark is cheap. The demonstrations held only states; that upright and still is good, and which way leads "
        f"there, was learned. Lines: {SHOWN_EPISODES} episodes from the same starts."
    )
    figure = pendulum.cost_map(load_cost(run.cost), shown["expert"], shown["learned"])
    return [Picture("Learned cost", png(figure), caption), motion]


def _driving(run: RunDirectory) -> list[Picture]:
    """CarRacing's: a lap by the expert and one by what was learned, and the cost along that track."""
    from rhirl.report import car_racing  # needs Box2D
    from rhirl.simulators.car.track import make_track

    config = run.config()
    task, agent = load_agent(run)
    simulator: Any = task.simulator()
    env, seed = task.make_env(), episode_seeds(VALIDATION, 0, 1)[0]
    drives = [
        simulator.replay(seed, run_episode(env, who, horizon=task.T, noise=config.noise, seed=seed).controls)
        for who in (expert_agent(task, config.noise), agent)
    ]
    track = make_track(seed)
    figure = car_racing.cost_map(load_cost(run.cost), simulator, track, *drives)
    caption = (
        "Dark is cheap: the cost of a car that follows the road at 40 m/s, on it and up to 16 m beside it, as the "
        "network sees it in the frame. The thin lines are the edges of the road. No learner has seen this track."
    )
    moving = car_racing.animation(track, *drives)
    return [
        Picture("Learned cost", png(figure), caption),
        Picture("In motion", moving, "The expert and the learned controller on a track neither has seen.", "gif"),
    ]


def _figure(picture: Picture) -> str:
    title, source = html.escape(picture.title), data_uri(picture.content, f"image/{picture.kind}")
    return (
        f'<h2>{title}</h2><figure><img alt="{title}" src="{source}">'
        f"<figcaption>{html.escape(picture.caption)}</figcaption></figure>"
    )


def summary(result: dict[str, Any]) -> str:
    """Say an evaluation in one sentence."""
    return (
        f"{result['task']} at noise σ = {result['noise']:g}: return {result['return_mean']:.1f} "
        f"± {result['return_std']:.1f} over {result['episodes']} episodes; expert {result['expert_return']:.1f}, "
        f"random {result['random_return']:.1f}; score {result['score']:.3f}, ratio {result['ratio']:.3f}"
    )
