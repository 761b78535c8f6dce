"""The paper's second table: a cost learned in one world, used in another.

A method that learned a stationary cost optimises a policy for it anew under the other noise. The policy's run lies
inside the run that learned the cost, in `reoptimised/noise<σ>`, and is a run directory like any other: it can be
stopped, resumed and evaluated. RHIRL needs none of this: it plans anew at every step anyway. GAIL's discriminator
judges states beside those of a policy that is gone, and behaviour cloning has no cost: their policies act as they
are.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import fields, replace

from rhirl.baselines import ImitationConfig
from rhirl.experiments.methods import get_method
from rhirl.experiments.run import RunConfig, RunDirectory, RunError
from rhirl.experiments.train import Progress, train


def plan_reoptimisation(run: RunDirectory, noise: float) -> tuple[RunDirectory, RunConfig]:
    """Lay down how a run's cost is optimised under noise σ, and where."""
    config = run.config()
    if config.method == "rhirl" or not get_method(config.method).has_cost:
        raise RunError(
            f"{config.method} has no policy to optimise anew: leave --reoptimise out, and it acts as it is"
        )
    known = {field.name for field in fields(ImitationConfig)}
    hyper = {name: value for name, value in config.hyper.items() if name in known}
    target = RunDirectory(run.path / "reoptimised" / f"noise{noise:g}")
    return target, replace(config, method="reoptimise", noise=noise, hyper=hyper)


def reoptimise(
    run: RunDirectory, noise: float, *, show: Callable[[Progress], None] = lambda _: None
) -> RunDirectory:
    """Optimise a policy for a run's cost under noise σ, or go on with it; return the policy's run."""
    target, config = plan_reoptimisation(run, noise)
    begun = target.exists()
    if not begun:
        target.path.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.cost, target.cost)
    if not begun or target.checkpoints.exists():
        train(target, config, resume=begun, show=show)
    return target
