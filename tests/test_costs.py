"""Cost networks, their normaliser and their files."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from rhirl.costs import MLP, Cost, CostFileError, Normaliser, load_cost, save_cost


def make_cost(n: int = 3, hidden: tuple[int, ...] = (8, 4), seed: int = 0) -> Cost:
    x = np.random.default_rng(seed).normal(2.0, 3.0, (50, n))
    return Cost(Normaliser.of(x), MLP.of(jax.random.key(seed), n, hidden))


def leaves(cost: Cost) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(cost)]


def test_the_normaliser_by_hand() -> None:
    normalise = Normaliser.of([[[0.0, 7.0], [2.0, 7.0]], [[4.0, 7.0], [6.0, 7.0]]], floor=0.5, limit=3.0)
    np.testing.assert_allclose(normalise.mean, [3, 7])
    np.testing.assert_allclose(normalise.deviation, [np.sqrt(5), 0.5], rtol=1e-6)
    z = normalise(jnp.array([[3.0, 7.5], [1e30, -1e30], [jnp.inf, 7.0]]))
    np.testing.assert_allclose(z, [[0, 1], [3, -3], [3, 0]])


def test_a_network_by_hand() -> None:
    network = MLP(
        (jnp.array([[1.0, -1.0], [2.0, 0.0]]), jnp.array([[3.0], [5.0]])),
        (jnp.array([0.5, -0.5]),),
    )
    # Hidden: relu(1 + 4 + 0.5), relu(−1 − 0.5) at (1, 2); relu(−2 + 0.5), relu(2 − 0.5) at (−2, 0).
    np.testing.assert_allclose(network(jnp.array([[1.0, 2.0], [-2.0, 0.0]])), [16.5, 7.5])


@pytest.mark.parametrize("hidden", [(), (5,), (8, 4)])
def test_networks_of_any_size_have_no_output_bias(hidden: tuple[int, ...]) -> None:
    network = MLP.of(jax.random.key(0), 3, hidden)
    sizes = [3, *hidden, 1]
    assert [w.shape for w in network.weights] == list(pairwise(sizes))
    assert [b.shape for b in network.biases] == [(h,) for h in hidden]
    for weight, fan_in in zip(network.weights, sizes[:-1], strict=True):
        assert 0 < jnp.abs(weight).max() <= fan_in**-0.5


def test_layers_start_differently() -> None:
    network = MLP.of(jax.random.key(0), 4, (4, 4))
    drawn = [*network.weights, *network.biases]
    values = np.concatenate([np.ravel(leaf) * leaf.shape[0] ** 0.5 for leaf in drawn])
    assert np.unique(values).size > 0.9 * values.size


@pytest.mark.parametrize("batch", [(), (2,), (2, 5), (2, 3, 4)])
def test_the_cost_takes_any_batch(batch: tuple[int, ...]) -> None:
    cost = make_cost()
    x: NDArray[Any] = np.random.default_rng(1).standard_normal((*batch, 3))
    g = cost(jnp.asarray(x))
    assert g.shape == batch
    assert g.dtype == jnp.float32
    one_by_one = [cost(jnp.asarray(row)) for row in x.reshape(-1, 3)]
    np.testing.assert_allclose(np.ravel(g), one_by_one, rtol=1e-5, atol=1e-6)


def test_the_cost_is_bounded_wherever_the_planner_goes() -> None:
    g = make_cost()(jnp.array([[1e38] * 3, [-1e38] * 3, [jnp.inf, -jnp.inf, 0.0]]))
    assert jnp.isfinite(g).all()
    assert jnp.abs(g).max() < 100


@pytest.mark.parametrize("hidden", [(), (8, 4)])
def test_a_saved_cost_comes_back_bit_for_bit(tmp_path: Path, hidden: tuple[int, ...]) -> None:
    cost = make_cost(hidden=hidden)
    save_cost(cost, tmp_path / "new" / "cost.safetensors")
    assert leaves(load_cost(tmp_path / "new" / "cost.safetensors")) == leaves(cost)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["cost.safetensors"]


def test_saving_replaces_the_file_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cost.safetensors"
    first, second = make_cost(seed=0), make_cost(seed=1)
    save_cost(first, path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _fail)
        with pytest.raises(OSError, match="power cut"):
            save_cost(second, path)
    assert leaves(load_cost(path)) == leaves(first)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _fail)
        with pytest.raises(OSError, match="power cut"):
            save_cost(second, path)
    assert leaves(load_cost(path)) == leaves(first)
    save_cost(second, path)
    assert leaves(load_cost(path)) == leaves(second)


def _fail(*_: Any) -> None:
    raise OSError("power cut")


def rewrite(path: Path, tensors: dict[str, Any] | None = None, **changes: Any) -> None:
    """Write a cost file again with some tensors or some of its description changed."""
    cost = make_cost()
    save_cost(cost, path)
    stored = load_file(path) | (tensors or {})
    stored = {name: tensor for name, tensor in stored.items() if tensor is not None}
    description = {"format": "rhirl-cost-1", "kind": "mlp", "n": 3, "hidden": [8, 4]} | changes
    save_file(stored, path, metadata={"rhirl": json.dumps(description)})


def test_rewriting_without_a_change_is_accepted(tmp_path: Path) -> None:
    rewrite(tmp_path / "cost.safetensors")
    assert leaves(load_cost(tmp_path / "cost.safetensors")) == leaves(make_cost())


FIRST = "network.weights.0"


@pytest.mark.parametrize(
    ("tensors", "changes", "complaint"),
    [
        ({}, {"format": "rhirl-cost-2"}, "not a cost"),
        ({}, {"n": 4}, "do not fit"),
        ({}, {"n": 10**12}, "do not fit"),
        ({}, {"hidden": [10**9, 10**9]}, "do not fit"),
        ({}, {"hidden": [8]}, "do not fit"),
        ({}, {"hidden": None}, "description"),
        ({}, {"n": "three"}, "description"),
        ({}, {"n": -3}, "do not fit"),
        ({FIRST: None}, {}, "do not fit"),
        ({"extra": np.zeros(3, np.float32)}, {}, "do not fit"),
        ({FIRST: np.zeros((8, 3), np.float32)}, {}, "do not fit"),
        ({FIRST: np.zeros((3, 8), np.float64)}, {}, "float32"),
        ({FIRST: np.full((3, 8), np.nan, np.float32)}, {}, "network.weights.0 holds values that are not finite"),
    ],
)
def test_a_file_that_is_no_cost_of_ours_is_refused_with_the_reason(
    tmp_path: Path, tensors: dict[str, Any], changes: dict[str, Any], complaint: str
) -> None:
    path = tmp_path / "cost.safetensors"
    rewrite(path, tensors, **changes)
    with pytest.raises(CostFileError, match=complaint) as error:
        load_cost(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("text", ["[]", "3", "null", "{", '"format"'])
def test_a_description_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cost.safetensors"
    save_file({"a": np.zeros(3, np.float32)}, path, metadata={"rhirl": text})
    with pytest.raises(CostFileError, match=r"cost\.safetensors"):
        load_cost(path)


def test_missing_truncated_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CostFileError, match="no such file"):
        load_cost(tmp_path / "none.safetensors")
    path = tmp_path / "cost.safetensors"
    save_cost(make_cost(), path)
    whole = path.read_bytes()
    for content in (b"", b"cost", whole[:7], whole[:100], whole[:-1], whole + b"\0"):
        path.write_bytes(content)
        with pytest.raises(CostFileError, match="not a readable safetensors file"):
            load_cost(path)


def test_types_that_numpy_does_not_have_are_refused(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    path = tmp_path / "cost.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    with pytest.raises(CostFileError, match="not a readable safetensors file"):
        load_cost(path)
