"""Importing plain arrays and tables of states: what is read, and how mistakes are named."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal

from rhirl.demos import DemonstrationError, Demonstrations, read_demos, write_demos
from rhirl.demos.tables import import_table

ABOUT = {"task": "cart", "env_id": "Cart-v0"}
X = np.arange(24, dtype=np.float64).reshape(2, 4, 3) / 8


def load(path: Path, **options: Any) -> Demonstrations:
    return import_table(path, **(ABOUT | options))


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def refuses(path: Path, *parts: str, **options: Any) -> None:
    """The error names the file and every part."""
    with pytest.raises(DemonstrationError) as caught:
        load(path, **options)
    for part in (str(path), *parts):
        assert part in str(caught.value)


def test_one_array_of_episodes(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", observations=X)
    demos = load(tmp_path / "x.npz")
    assert demos.observations.dtype == np.float32
    assert_array_equal(demos.observations, X.astype(np.float32))
    assert_array_equal(demos.lengths, [3, 3])
    assert all(math.isnan(r) for r in demos.meta.returns)
    assert demos.meta.seeds == (-1, -1)
    assert demos.meta.source == "imported from x.npz"
    assert (demos.meta.task, demos.meta.env_id, demos.horizon) == ("cart", "Cart-v0", 3)


def test_lengths_and_returns_beside_the_array_are_read_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    padded = X.copy()
    padded[1, 2:] = np.nan
    np.savez(tmp_path / "x.npz", observations=padded, lengths=[3, 1], returns=[1.5, -2.0], actions=np.ones(7))
    demos = load(tmp_path / "x.npz", horizon=5)
    assert_array_equal(demos.lengths, [3, 1])
    assert demos.meta.returns == (1.5, -2.0)
    assert demos.horizon == 5
    assert demos.controls is None
    assert_array_equal(demos.states(), np.concatenate([X[0], X[1, :2]]).astype(np.float32))


def test_an_array_per_episode_in_the_order_of_their_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", run10=X[1], run9=X[0, :2])
    demos = load(tmp_path / "x.npz")
    assert_array_equal(demos.lengths, [1, 3])
    assert_array_equal(demos.observations[1], X[1].astype(np.float32))


def test_images_stay_bytes(tmp_path: Path) -> None:
    images = np.arange(2 * 3 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 4, 3)
    np.savez(tmp_path / "x.npz", observations=images)
    demos = load(tmp_path / "x.npz")
    assert demos.observations.dtype == np.uint8
    assert_array_equal(demos.observations, images)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    x=arrays.arrays(
        np.float32,
        st.tuples(*[st.integers(1, 3), st.integers(2, 5), st.integers(1, 4)]),
        elements=st.floats(width=32),
    )
)
def test_npz_and_csv_give_the_same_bits_or_the_same_refusal(tmp_path: Path, x: np.ndarray) -> None:
    np.savez(tmp_path / "x.npz", observations=x)
    lines = [",".join(["episode", *(f"x{j}" for j in range(x.shape[2]))])]
    lines += [",".join([str(i), *map(repr, row.tolist())]) for i, episode in enumerate(x) for row in episode]
    table = write(tmp_path / "x.csv", "\n".join(lines))
    if np.isfinite(x).all():
        assert_array_equal(load(tmp_path / "x.npz").observations, x)
        assert_array_equal(load(table).observations, x)
    else:
        refuses(tmp_path / "x.npz", "not finite")
        refuses(table, "not a finite number")


def test_a_table_with_episodes_and_steps(tmp_path: Path) -> None:
    table = write(
        tmp_path / "x.csv",
        "\ufeffepisode, step ,angle,velocity\na,0,0.5,1\na,1,0.25,2\n\nb,7,1e-1,3\nb,8,-2,4\nb,9,0,5\n",
    )
    demos = load(table, horizon=4, source="my hand")
    assert_array_equal(demos.lengths, [1, 2])
    assert_array_equal(demos.observations[0, :2], np.array([[0.5, 1], [0.25, 2]], np.float32))
    assert_array_equal(demos.observations[1, :3], np.array([[0.1, 3], [-2, 4], [0, 5]], np.float32))
    assert demos.meta.source == "my hand"


def test_columns_are_chosen_and_ordered_by_name(tmp_path: Path) -> None:
    table = write(tmp_path / "x.csv", "time,angle,note,velocity\n0,1,left,3\n0.1,4,right,6\n")
    demos = load(table, columns=["velocity", "angle"])
    assert_array_equal(demos.observations, np.array([[[3, 1], [6, 4]]], np.float32))
    refuses(table, "line 2", "column note", "'left'")
    refuses(table, "no column speed", "time, angle, note, velocity", columns=["speed"])


def test_a_folder_holds_an_episode_a_file(tmp_path: Path) -> None:
    write(tmp_path / "run10.csv", "p,q\n5,6\n7,8\n9,10\n")
    write(tmp_path / "run2.csv", "p,q\n1,2\n3,4\n")
    write(tmp_path / "README.txt", "not a table")
    demos = load(tmp_path)
    assert_array_equal(demos.lengths, [1, 2])
    assert_array_equal(demos.observations[0, :2], np.array([[1, 2], [3, 4]], np.float32))
    write(tmp_path / "run3.csv", "q,p\n1,2\n3,4\n")
    refuses(tmp_path, "run3.csv", "line 1", "columns q, p", "p, q")
    write(tmp_path / "run3.csv", "episode,p,q\n1,2,3\n1,3,4\n")
    refuses(tmp_path, "run3.csv", "episode")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["column names"]),
        ("p,q\n", ["lines of states"]),
        ("p,q\n1,2\n", ["line 2", "one state"]),
        ("0.1,2\n1,2\n3,4\n", ["line 1", "must name the columns"]),
        ("p;q\n1;2\n3;4\n", ["line 1", "commas"]),
        ("p,p\n1,2\n3,4\n", ["line 1", "column 2", "'p'"]),
        ("p,\n1,2\n3,4\n", ["line 1", "column 2"]),
        ("p,q\n1,2\n3\n", ["line 3", "1 cells for 2 columns"]),
        ("p,q\n1,2\n3,4,5\n", ["line 3", "3 cells"]),
        ("p,q\n1,2\n\n3,x4\n", ["line 4", "column q", "'x4'"]),
        ("p,q\n1,2\n3,\n", ["line 3", "column q", "''"]),
        ("p,q\n1,2\n3,nan\n", ["line 3", "column q", "'nan'"]),
        ("p,q\n1,2\n1e39,4\n", ["episode 0", "step 1", "1e+39", "float32"]),
        ("episode,p\n0,1\n0,2\n1,3\n1,4\n0,5\n", ["line 6", "column episode", "sort"]),
        ("episode,p\n0,1\n0,2\n1,3\n", ["line 4", "one state"]),
        ("step,p\n0,1\n1,2\n3,3\n", ["line 4", "column step", "2 comes next"]),
        ("episode,step\n0,0\n0,1\n", ["no columns of states"]),
        ('p,q\n1,"2\n3,4\n', ["not a readable table"]),
    ],
)
def test_mistakes_in_tables_are_named(tmp_path: Path, text: str, parts: list[str]) -> None:
    refuses(write(tmp_path / "x.csv", text), *parts)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"p,q\n\xff\xfe\n")
    refuses(tmp_path / "x.csv", "not a readable table")
    refuses(tmp_path / "absent.csv", "no such file")
    refuses(tmp_path / "absent.npz", "no such file")
    (tmp_path / "empty").mkdir()
    refuses(tmp_path / "empty", "no .csv files")


def entries(**given: Any) -> dict[str, Any]:
    return given


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ({}, ["no arrays"]),
        (entries(observations=X[0]), ["observations", "(4, 3)", "observations[None]"]),
        (entries(observations=X[:0]), ["observations", "(0, 4, 3)"]),
        (entries(observations=X[:, :1]), ["episode 0", "does not lie in 1…0"]),
        (entries(observations=X, lengths=[3]), ["lengths", "(1,)", "2 episodes"]),
        (entries(observations=X, lengths=[3.0, 2.0]), ["lengths", "float64"]),
        (entries(observations=X, lengths=[3, 4]), ["episode 1", "lengths", "4"]),
        (entries(observations=X, returns=["a", "b"]), ["returns"]),
        (entries(observations=X.astype(complex)), ["episode 0", "complex128"]),
        (entries(observations=np.where(X == 2, np.inf, X)), ["episode 1", "not finite at step 1"]),
        (entries(observations=np.where(X == 2, -1e300, X)), ["episode 1", "step 1", "float32"]),
        (entries(a=X[0], b=X[1, :, :2]), ["ragged", "(2,)", "(3,)"]),
        (entries(a=X[0], b=np.ones(4)), ["b", "(4,)", "observations"]),
        (entries(a=X[0], b=X[1, :1]), ["b", "(1, 3)"]),
        (entries(observations=np.array([{"x": 1}], dtype=object)), ["pickle"]),
        (entries(a=X[0], b=np.array([print], dtype=object)), ["pickle"]),
    ],
)
def test_mistakes_in_arrays_are_named(tmp_path: Path, content: dict[str, Any], parts: list[str]) -> None:
    np.savez(tmp_path / "x.npz", **content)
    refuses(tmp_path / "x.npz", *parts)


def test_columns_of_arrays_have_no_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", observations=X)
    refuses(tmp_path / "x.npz", "columns", columns=["p"])


def test_longer_episodes_are_refused_or_cut_and_then_their_return_is_unknown(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", observations=X, lengths=[2, 3], returns=[1.0, 2.0])
    refuses(tmp_path / "x.npz", "episode 1: 3 steps", "the task has 2", "--cut", horizon=2)
    demos = load(tmp_path / "x.npz", horizon=2, cut=True)
    assert_array_equal(demos.lengths, [2, 2])
    assert_array_equal(demos.observations, X[:, :3].astype(np.float32))
    assert demos.meta.returns[0] == 1.0
    assert math.isnan(demos.meta.returns[1])


def test_imported_demonstrations_become_a_file_like_any_other(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", observations=X, returns=[np.nan, 3.0])
    demos = load(tmp_path / "x.npz", noise=0.2, versions={"numpy": np.__version__})
    write_demos(demos, tmp_path / "demos.npz")
    again = read_demos(tmp_path / "demos.npz", task="cart", env_id="Cart-v0")
    assert_array_equal(again.observations, demos.observations)
    assert math.isnan(again.meta.returns[0])
    assert again.meta.returns[1] == 3.0
    assert (again.meta.noise, again.meta.versions) == (0.2, {"numpy": np.__version__})
    refuses(tmp_path / "demos.npz", "demonstration file already")
