"""What inspection says and draws about demonstrations whose numbers are known."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhirl.demos import DemonstrationError, Demonstrations, Metadata, from_episodes, write_demos
from rhirl.demos.inspect import draw, plot, summary

META = Metadata("cart", "Cart-v0", 0.2, (3.0, 7.0), (4, 5), "a hand", {"simulator": "1.2.3"})
CONTRACT = {
    *("task", "noise", "episodes", "length", "observation_dim"),
    *("return_mean", "return_std", "returns", "versions", "sha256"),
}


@pytest.fixture
def demos() -> Demonstrations:
    """Two episodes of a point: the second one falls after 2 of 4 steps."""
    first = np.array([[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]], np.float32)
    second = np.array([[0, -5], [10, -5], [20, -6]], np.float32)
    controls = [np.zeros((4, 1), np.float32), np.ones((2, 1), np.float32)]
    return from_episodes([first, second], META, horizon=4, controls=controls)


@pytest.fixture
def images() -> Demonstrations:
    x = np.zeros((1, 3, 4, 4, 3), np.uint8)
    x[:, 1, :2, :, 0], x[:, 2, :, :, 2] = 100, 255
    return Demonstrations(x, np.array([2]), replace(META, returns=(1.0,), seeds=(0,)))


def heights(axes: Any) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


def line(axes: Any) -> np.ndarray:
    return np.asarray(axes.lines[0].get_ydata())


def test_summary_of_demonstrations(demos: Demonstrations) -> None:
    assert summary(demos) == {
        "task": "cart",
        "env_id": "Cart-v0",
        "source": "a hand",
        "noise": 0.2,
        "episodes": 2,
        "length": 4,
        "lengths": [4, 2],
        "ended_early": 1,
        "states": 8,
        "observation_dim": 2,
        "observation_shape": [2],
        "observation_low": [0.0, -6.0],
        "observation_high": [20.0, 1.0],
        "control_dim": 1,
        "return_mean": 5.0,
        "return_std": 2.0,
        "returns": [3.0, 7.0],
        "seeds": [4, 5],
        "versions": {"simulator": "1.2.3"},
        "sha256": None,
    }


def test_summary_of_a_file_adds_its_hash_and_reads_other_versions(demos: Demonstrations, tmp_path: Path) -> None:
    path = tmp_path / "demos.npz"
    write_demos(demos, path)
    about = summary(path)
    assert about == summary(demos) | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert about == summary(str(path))
    assert about.keys() >= CONTRACT
    with pytest.raises(DemonstrationError, match=r"absent\.npz: no such file"):
        summary(tmp_path / "absent.npz")


def test_what_is_unknown_is_null_in_strict_json(demos: Demonstrations) -> None:
    about = summary(replace(demos, controls=None, meta=replace(META, returns=(math.nan, 7.0))))
    assert (about["return_mean"], about["return_std"], about["returns"]) == (None, None, [None, 7.0])
    assert about["control_dim"] is None
    assert json.loads(json.dumps(about, allow_nan=False)) == about


def test_images_are_described_by_colour(images: Demonstrations) -> None:
    about = summary(images)
    assert (about["observation_dim"], about["observation_shape"]) == (48, [4, 4, 3])
    assert (about["observation_low"], about["observation_high"]) == ([0, 0, 0], [100, 0, 255])
    _, _, red, green, blue = draw(images).axes
    for axes, brightness in ((red, [0, 50, 0]), (green, [0, 0, 0]), (blue, [0, 0, 255])):
        assert_array_equal(line(axes), brightness)


def test_the_picture_shows_returns_lengths_and_bands(demos: Demonstrations) -> None:
    figure = draw(demos)
    returns, lengths, x0, x1 = figure.axes
    assert heights(returns) == [3.0, 7.0]
    assert heights(lengths) == [4.0, 2.0]
    assert_allclose(line(x0), [0, 5.5, 11, 3, 4])
    assert_allclose(line(x1), [-2, -2, -2.5, 1, 1])
    band = np.asarray(x0.collections[0].get_paths()[0].vertices)
    assert set(map(tuple, band.tolist())) == {(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (1, 10), (2, 20)}
    assert figure.get_suptitle() == "cart, control noise 0.2: 2 demonstrations"


def test_a_picture_of_many_coordinates_shows_the_first_and_says_so(demos: Demonstrations, tmp_path: Path) -> None:
    wide = replace(demos, observations=np.repeat(demos.observations, 10, axis=2))
    figure = draw(wide)
    assert len(figure.axes) == 2 + 12
    assert "first 12 of 20 coordinates" in figure.get_suptitle()
    plot(wide, tmp_path / "demos.png")
    assert (tmp_path / "demos.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_returns_are_drawn_as_nothing(demos: Demonstrations, tmp_path: Path) -> None:
    unknown = replace(demos, meta=replace(META, returns=(math.nan, math.nan)))
    plot(unknown, tmp_path / "demos.svg")
    assert "</svg>" in (tmp_path / "demos.svg").read_text()
