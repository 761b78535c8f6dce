"""The cost network for images: its arithmetic, its gradient, its files, and RHIRL learning with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from rhirl.costs import (
    CNN,
    MLP,
    Cost,
    CostFileError,
    Normaliser,
    Pixels,
    load_cost,
    network_of,
    normaliser_of,
    save_cost,
)
from rhirl.costs.cnn import BLOCK, features
from rhirl.demos import Demonstrations, Metadata
from rhirl.learning import RHIRL, Config, Controller
from rhirl.learning.objective import resample
from rhirl.planning import Planner
from rhirl.simulators import Rollout


def pictures(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def make_cost(shape: tuple[int, int, int] = (48, 48, 1), seed: int = 0) -> Cost:
    return Cost(Pixels.of(shape), CNN.of(jax.random.key(seed), shape[2], (8,)))


def by_hand(network: CNN, picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The features of one picture, by loops."""
    z = picture.astype(np.float64) * 2 / 255 - 1
    for layer, (kernel, bias) in enumerate(zip(network.kernels, network.biases, strict=True)):
        stride = 3 if layer == 0 else 2
        out = [-(-side // stride) for side in z.shape[:2]]
        missing = [max((o - 1) * stride + 3 - side, 0) for o, side in zip(out, z.shape[:2], strict=True)]
        before = [m // 2 if layer else 0 for m in missing]  # SAME for stride 2, at the end for stride 3
        z = np.pad(z, [(b, m - b) for b, m in zip(before, missing, strict=True)] + [(0, 0)])
        windows = [
            [z[stride * i : stride * i + 3, stride * j : stride * j + 3] for j in range(out[1])]
            for i in range(out[0])
        ]
        z = np.maximum(np.einsum("ijabc,abcd->ijd", np.array(windows), np.asarray(kernel)) + np.asarray(bias), 0)
    h, w = (side // 2 + side % 2 for side in z.shape[:2])
    quarters = [z[rows, columns] for rows in np.s_[:h, -h:] for columns in np.s_[:w, -w:]]
    return np.concatenate([quarter.mean(axis=(0, 1)) for quarter in quarters])


@pytest.mark.parametrize("shape", [(48, 48, 1), (48, 48, 3), (96, 96, 3), (40, 64, 2)])
def test_features_by_hand(shape: tuple[int, int, int]) -> None:
    network = CNN.of(jax.random.key(1), shape[2], (8,))
    x = pictures(2, *shape)
    found = features(network.kernels, network.biases, jnp.asarray(x))
    assert found.shape == (2, 128)
    np.testing.assert_allclose(found, [by_hand(network, one) for one in x], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [(), (3,), (2, 5), (BLOCK + 3,), (2, BLOCK)])
def test_the_cost_takes_any_batch_in_blocks_or_not(batch: tuple[int, ...]) -> None:
    cost, x = make_cost(), pictures(*batch, 48, 48, 1)
    g = cost(jnp.asarray(x))
    assert g.shape == batch
    assert g.dtype == jnp.float32
    rows = x.reshape(-1, 48, 48, 1)
    chosen = [0, len(rows) // 2, len(rows) - 1]
    np.testing.assert_allclose(
        np.ravel(g)[chosen], [cost(jnp.asarray(rows[i])) for i in chosen], rtol=1e-4, atol=1e-5
    )


def test_the_gradient_does_not_depend_on_blocks() -> None:
    x = jnp.asarray(pictures(BLOCK + 6, 48, 48, 1))
    v = jnp.asarray(np.random.default_rng(2).normal(size=len(x)), jnp.float32)
    cost = make_cost()

    def in_blocks(network: CNN) -> Any:
        return jnp.vdot(v, Cost(cost.normalise, network)(x))

    def one_by_one(network: CNN) -> Any:
        return sum(v[i] * Cost(cost.normalise, network)(x[i]) for i in (0, 1, len(x) - 1))

    v = v.at[2:-1].set(0.0)
    assert float(in_blocks(cost.network)) == pytest.approx(float(one_by_one(cost.network)), rel=1e-4)
    gradients = jax.grad(in_blocks)(cost.network), jax.grad(one_by_one)(cost.network)
    for a, b in zip(*map(jax.tree.leaves, gradients), strict=True):
        assert jnp.abs(b).max() > 0
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)


def test_a_blind_cost_cannot_see_where_it_is_blind() -> None:
    blind = np.zeros((48, 48))
    blind[42:, :6] = 1
    cost = Cost(Pixels.of((48, 48, 1), blind), CNN.of(jax.random.key(0), 1, (8,)))
    x = pictures(4, 48, 48, 1)
    changed = x.copy()
    changed[:, 42:, :6] = 255
    np.testing.assert_array_equal(cost(jnp.asarray(x)), cost(jnp.asarray(changed)))
    seen = x.copy()
    seen[:, 41, 20:] = 255
    assert not np.array_equal(cost(jnp.asarray(x)), cost(jnp.asarray(seen)))


def test_images_get_convolutions_and_vectors_do_not() -> None:
    key = jax.random.key(0)
    assert isinstance(network_of(key, (48, 48, 3), (8,)), CNN)
    assert isinstance(network_of(key, (5,), (8,)), MLP)
    assert isinstance(normaliser_of(pictures(2, 48, 48, 3), floor=0.1, limit=5), Pixels)
    assert isinstance(normaliser_of(np.zeros((2, 5), np.float32), floor=0.1, limit=5), Normaliser)


def test_a_saved_cost_comes_back_bit_for_bit(tmp_path: Path) -> None:
    cost = make_cost((48, 48, 3))
    save_cost(cost, tmp_path / "cost.safetensors")
    loaded = load_cost(tmp_path / "cost.safetensors")
    assert isinstance(loaded.network, CNN)
    for a, b in zip(jax.tree.leaves(loaded), jax.tree.leaves(cost), strict=True):
        np.testing.assert_array_equal(a, b)
    x = jnp.asarray(pictures(3, 48, 48, 3))
    np.testing.assert_array_equal(loaded(x), cost(x))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"shape": [48, 48, 3]}, "do not fit"),
        ({"shape": [96, 48, 1]}, "do not fit"),
        ({"shape": [48, 48]}, "description"),
        ({"shape": None}, "description"),
        ({"hidden": [4]}, "do not fit"),
        ({"kind": "mlp"}, "description"),
    ],
)
def test_a_damaged_description_is_refused(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    path = tmp_path / "cost.safetensors"
    save_cost(make_cost(), path)
    description = {"format": "rhirl-cost-1", "kind": "cnn", "shape": [48, 48, 1], "hidden": [8]} | changes
    save_file(load_file(path), path, metadata={"rhirl": json.dumps(description)})
    with pytest.raises(CostFileError, match=complaint):
        load_cost(path)


class Walk(NamedTuple):
    """Where a white square is in a dark picture."""

    at: NDArray[np.float64]


class SquareSimulator:
    """A white square that a control moves sideways; all there is to see is the picture."""

    observation_shape = (48, 48, 1)
    control_dim = 1

    def reset(self, seed: int) -> Walk:
        return Walk(np.array(np.random.default_rng(seed).uniform(4, 12)))

    def observe(self, state: Walk) -> NDArray[np.uint8]:
        return self._draw(state.at[None])[0]

    def step(self, state: Walk, control: NDArray[Any], seed: int = 0) -> Walk:
        return Walk(np.clip(state.at + 2.0 * np.clip(control[0], -1, 1), 0, 40))

    def terminated(self, state: Walk) -> bool:
        return False

    def rollout(self, state: Walk, controls: NDArray[Any], seed: int = 0) -> Rollout:
        moved = np.zeros((controls.shape[0], controls.shape[1] + 1)) + state.at
        for k in range(controls.shape[1]):
            moved[:, k + 1] = np.clip(moved[:, k] + 2.0 * controls[:, k, 0], 0, 40)
        shown = self._draw(moved.ravel()).reshape(*moved.shape, 48, 48, 1)
        return Rollout(shown, np.ones(len(controls), np.bool_))

    def _draw(self, at: NDArray[np.float64]) -> NDArray[np.uint8]:
        columns = np.arange(48)
        inside = (columns >= at[:, None]) & (columns < at[:, None] + 8)
        shown = np.zeros((len(at), 48, 48, 1), np.uint8)
        shown[:, 20:28, :, 0] = 255 * inside[:, None, :]
        return shown


def test_rhirl_learns_from_pictures_alone_where_to_go() -> None:
    simulator = SquareSimulator()
    rows = []
    for start in (4.0, 7.0, 10.0):
        path = np.minimum(start + 2.0 * np.arange(16), 30.0)
        rows.append(simulator._draw(path))
    shown = np.stack(rows)
    meta = Metadata("square", "", 0.0, (0.0,) * 3, (0,) * 3, "by hand")
    demos = Demonstrations(shown, np.full(3, 15), meta)
    config = Config(
        planner=Planner(K=4, M=12, ess=0.3), iterations=60, parallel=2, hidden=(16,), lr=1e-3, average=0.9
    )
    learner = RHIRL(simulator, demos, config, seed=0).learn()
    assert isinstance(learner.state.network, CNN)
    controller = Controller(simulator, learner.learned_cost, config.planner)
    state = simulator.reset(5)
    for _ in range(15):
        state = simulator.step(state, controller.act(state))
    assert state.at > 22  # it started below 12, and the expert ends at 30


def test_sequences_are_drawn_by_their_weights() -> None:
    rollouts = jnp.arange(8.0)[:, None, None] * jnp.ones((8, 3, 1))  # M = 4, M_s = 2
    picked, w = resample(rollouts, jnp.array([0.5, 0.0, 0.25, 0.25]), 4, M_s=2)
    np.testing.assert_array_equal(picked[:, 0, 0], [0, 1, 0, 1, 4, 5, 6, 7])
    np.testing.assert_allclose(w, 0.25)
    nothing, none = resample(rollouts, jnp.zeros(4), 4, M_s=2)
    assert nothing.shape == (8, 3, 1)
    np.testing.assert_array_equal(none, 0.0)


def test_a_sequence_comes_up_as_often_as_it_weighs() -> None:
    w = np.random.default_rng(0).dirichlet(np.full(64, 0.2)).astype(np.float32)
    picked, equal = resample(jnp.arange(64.0)[:, None, None], jnp.asarray(w), 24)
    times = np.bincount(np.asarray(picked).ravel().astype(int), minlength=64)
    assert np.all(np.abs(times - 24 * w) < 1 + 1e-4)
    assert equal.sum() == pytest.approx(1.0, abs=1e-5)
