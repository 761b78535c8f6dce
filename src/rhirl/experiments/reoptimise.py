"""The paper's second table: a cost learned in one world, used in another.

A method that learned a stationary cost optimises a policy for it anew under the other noise: rivals by SAC in the
environment, RHIRL by rehearsals in the simulator, where it has a proposal that can rehearse. The policy's run lies
inside the run that learned the cost, in `reoptimised/noise<σ>`, and is a run directory like any other: it can be
stopped, resumed and evaluated. GAIL's discriminator judges states beside those of a policy that is gone, and
behaviour cloning has no cost: their policies act as they are.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import fields, replace

from rhirl.baselines import ImitationConfig
from rhirl.experiments.methods import get_method
from rhirl.experiments.presets import build, to_dict
from rhirl.experiments.run import RunConfig, RunDirectory, RunError
from rhirl.experiments.train import Progress, train
from rhirl.learning import Config

ROUNDS = 300
"""Of rehearsals, where RHIRL's proposal rehearses under noise that was not demonstrated."""


def plan_reoptimisation(run: RunDirectory, noise: float) -> tuple[RunDirectory, RunConfig]:
    """Lay down how a run's cost is optimised under noise σ, and where."""
    config, target = run.config(), RunDirectory(run.path / "reoptimised" / f"noise{noise:g}")
    if config.method == "rhirl":
        settings = build(Config, config.hyper)
        if not settings.guided or settings.beyond == 0:
            raise RunError("this run plans without a proposal: leave --reoptimise out, and it plans anew anyway")
        hyper = to_dict(replace(settings, rehearsals=ROUNDS))
        return target, replace(config, method="rehearse", noise=noise, hyper=hyper, demonstrated=config.noise)
    if not get_method(config.method).has_cost:
        raise RunError(
            f"{config.method} has no policy to optimise anew: leave --reoptimise out, and it acts as it is"
        )
    known = {field.name for field in fields(ImitationConfig)}
    hyper = {name: value for name, value in config.hyper.items() if name in known}
    return target, replace(config, method="reoptimise", noise=noise, hyper=hyper)


def reoptimise(
    run: RunDirectory, noise: float, *, show: Callable[[Progress], None] = lambda _: None
) -> RunDirectory:
    """Optimise a policy for a run's cost under noise σ, or go on with it; return the policy's run."""
    target, config = plan_reoptimisation(run, noise)
    begun = target.exists()
    if not begun:
        target.path.mkdir(parents=True, exist_ok=True)
        for file in (run.cost, run.policy):
            shutil.copyfile(file, target.path / file.name)
    if not begun or target.checkpoints.exists():
        train(target, config, resume=begun, show=show)
    return target
