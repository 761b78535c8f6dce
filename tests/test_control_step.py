"""The B losses of a control step are differentiated in parts that fit a processor's cache: the same gradient."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from rhirl.demos import load_demos
from rhirl.learning import RHIRL, Config, control_step
from rhirl.learning.control_step import differentiated_together, in_parts
from rhirl.planning import Planner
from rhirl.simulators.pendulum import PendulumSimulator

SMALL = Config(planner=Planner(K=5, M=16), parallel=6, hidden=(8, 4), penalty=1.0, blur=0.1)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_a_mean_in_parts_is_the_mean(size: int) -> None:
    x, y = jnp.arange(12.0).reshape(6, 2), jnp.arange(6.0)
    mean = in_parts(lambda batch: {"x": (batch[0] * batch[1][:, None]).mean(axis=0)}, (x, y), 6, size)
    np.testing.assert_allclose(mean["x"], [110 / 6, 125 / 6], rtol=1e-6)


@pytest.mark.parametrize(("cached", "together"), [(1, 1), (767, 1), (1535, 1), (1536, 2), (3071, 3), (10**9, 6)])
def test_as_many_losses_at_once_as_fit_the_cache_and_divide_their_number(
    monkeypatch: pytest.MonkeyPatch, cached: int, together: int
) -> None:
    """A loss has 16 · 6 states of 8 units in the widest layer: 768 numbers."""
    monkeypatch.setattr(control_step, "CACHED", cached)
    assert differentiated_together(6, SMALL) == together


def test_few_lessons_and_narrow_networks_need_no_parts() -> None:
    wide = replace(SMALL, planner=Planner(K=100, M=100), hidden=(128, 128))
    assert differentiated_together(6, wide) == 1
    assert differentiated_together(6, replace(wide, lessons=10)) == 6
    assert differentiated_together(6, replace(wide, hidden=(8,))) == 6


def test_an_update_in_parts_is_the_update_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    demos = load_demos("pendulum", noise=0.0).take(4)

    def learned() -> tuple[np.ndarray, float]:
        jax.clear_caches()
        learner = RHIRL(PendulumSimulator(), demos, SMALL, seed=3)
        losses = [float(learner.step().loss) for _ in range(3)]
        return np.asarray(ravel_pytree(learner.state.network)[0]), sum(losses)

    whole, loss = learned()
    monkeypatch.setattr(control_step, "CACHED", 1536)
    parts, loss_of_parts = learned()
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-6)
    assert loss_of_parts == pytest.approx(loss, rel=1e-5)
