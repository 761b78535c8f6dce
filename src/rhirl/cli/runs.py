"""Verbs about runs: list the tasks, train, evaluate, report, look after the installation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from rhirl.cli.output import Counting, Json, Noise, TaskName, print_json, say

Method = Literal["rhirl", "firl", "airl", "gail", "bc"]
RunArgument = Annotated[Path, arg(metavar="RUN", help="A run directory.")]


def tasks(*, json: Json = False) -> None:
    """What there is: sizes, horizons, the expert's and the paper's scores."""
    from rhirl.experiments.listing import task_table

    rows = task_table()
    if json:
        print_json(rows)
        return
    from rich.table import Table

    table = Table("task", "n, m", "T", "expert", "random", "paper's expert", "paper's RHIRL", box=None)
    for row in rows:
        size = f"{row['observation_dim']}, {row['control_dim']}"
        shown = [row[key] for key in ("expert_return", "random_return", "paper_expert", "paper_rhirl")]
        table.add_row(row["task"], size, str(row["T"]), *("–" if x is None else f"{x:.0f}" for x in shown))
    say(table)


def train(
    task: Positional[TaskName],
    /,
    *,
    method: Method = "rhirl",
    noise: Noise = 0.0,
    seed: int = 0,
    preset: str = "default",
    out: Path | None = None,
    resume: bool = False,
    demos: Path | None = None,
    episodes: int | None = None,
    set: tuple[str, ...] = (),
    evaluations: int = 10,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Learn a cost from demonstrations.

    Args:
        task: The task's name; `rhirl tasks` lists them.
        method: How to learn; airl and bc need demonstrated controls, the others states only.
        noise: Noise of the demonstrations, and of the system the learner acts in.
        seed: Of everything random.
        preset: `default` is what we recommend, `paper` the published algorithm.
        out: The run directory; by default runs/<task>/<method>/noise<σ>/seed<k>.
        resume: Go on from the newest checkpoint of the run directory, bit for bit.
        demos: A demonstration file of your own instead of the bundled one.
        episodes: Learn from the first so many demonstrations only.
        set: Settings to change, such as `--set lr=1e-3 planner.M=100`.
        evaluations: How often to score the agent while it learns, five episodes each; 0 saves that time.
        force: Accept demonstrations made with other simulator versions.
        quiet: Say nothing but errors.
    """
    from rhirl.experiments import RunDirectory, StoppedError
    from rhirl.experiments.display import Display, learning
    from rhirl.experiments.plan import plan_run
    from rhirl.experiments.train import train as run_training

    config = plan_run(task, method, noise, seed, preset, demos, episodes, set, force, evaluations)
    run = RunDirectory(out or Path("runs") / task / method / f"noise{noise:g}" / f"seed{seed}")
    with Display(f"{task} {method}", learning, quiet=quiet) as display:
        try:
            run_training(
                run,
                config,
                resume=resume,
                force=force,
                show=display,
                warn=lambda text: say(f"warning: {text}"),
                note=display.note,
            )
        except StoppedError as stopped:
            say(f"{stopped}\nGo on with: rhirl train {task} --out {run.path} --resume")
            sys.exit(130)
    if not quiet:
        learned = run.cost if run.cost.exists() else run.policy
        say(f"learned: {learned}\nNext: rhirl eval {run.path}; rhirl report {run.path}")


def expert(
    task: Positional[TaskName],
    /,
    *,
    seed: int = 0,
    steps: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> None:
    """Train an expert by SAC on the environment's own reward, and score it on 100 episodes.

    Args:
        task: The task's name.
        seed: Of everything random.
        steps: Environment steps; by default what the task recommends for a CPU.
        out: The run directory; by default runs/<task>/expert/seed<k>.
        resume: Go on where the run stopped.
        quiet: Say nothing but errors.
    """
    from rhirl.experiments import RunDirectory, StoppedError
    from rhirl.experiments.display import Display, acting
    from rhirl.experiments.expert import plan_expert, train_expert
    from rhirl.tasks import get_task

    run = RunDirectory(out or Path("runs") / task / "expert" / f"seed{seed}")
    config = plan_expert(get_task(task), seed=seed, steps=steps)
    with Display(f"{task} expert", acting, quiet=quiet) as display:
        try:
            card = train_expert(run, config, resume=resume, show=display)
        except StoppedError as stopped:
            say(f"{stopped}\nGo on with: rhirl expert {task} --out {run.path} --resume")
            sys.exit(130)
    say(f"{run.path / 'policy.safetensors'}: return {card['return_mean']:.1f} ± {card['return_std']:.1f}")


def evaluate(
    run: Positional[RunArgument],
    /,
    *,
    episodes: int = 50,
    noise: Annotated[float | None, arg(metavar="σ")] = None,
    seed: int = 0,
    reoptimise: bool = False,
    workers: int = 1,
    json: Json = False,
) -> None:
    """Score a run in the plain Gymnasium environment, on seeds that training never saw.

    Args:
        run: A run directory.
        episodes: How many episodes.
        noise: Standard deviation of the control noise; by default that of the run.
        seed: Which block of evaluation seeds.
        reoptimise: First optimise a policy anew for the learned cost, under this noise; rhirl rehearses.
        workers: Processes that share the episodes, a core to each; the returns stay the same.
        json: Print one JSON document on standard output.
    """
    from rhirl.experiments import RunDirectory, StoppedError, evaluate_run
    from rhirl.experiments.display import Display, learning
    from rhirl.experiments.reoptimise import reoptimise as optimise
    from rhirl.report.page import summary

    learned, policy = RunDirectory(run), None
    if reoptimise:
        level = learned.config().noise if noise is None else noise
        with Display(f"optimising at σ = {level:g}", learning, quiet=json) as display:
            try:
                policy = optimise(learned, level, show=display)
            except StoppedError as stopped:
                say(f"{stopped}\nGo on with the same command.")
                sys.exit(130)
    with Counting("evaluating", episodes) as progress:
        result = evaluate_run(
            learned, episodes=episodes, noise=noise, seed=seed, progress=progress, policy=policy, workers=workers
        )
    if json:
        print_json(result)
    else:
        say(summary(result))


def report(run: Positional[RunArgument], /, *, pictures: Path | None = None) -> None:
    """Draw a run: learning curve, learned cost, planner health, animation; one HTML file.

    Args:
        run: A run directory.
        pictures: A folder in which to keep the pictures as files too.
    """
    from rhirl.experiments import RunDirectory
    from rhirl.report import write_report

    say(f"written: {write_report(RunDirectory(run), pictures)}")


def doctor(*, json: Json = False) -> None:
    """Look whether this installation is well: versions, threads, a self-check."""
    from rhirl.experiments.doctor import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        if not json:
            say(f"{'ok  ' if finding.well else 'BAD '} {finding.what}: {finding.detail}")
    if json:
        print_json([finding._asdict() for finding in findings])
    if not all(finding.well for finding in findings):
        sys.exit(1)
