"""Minari in and out, against datasets that Minari's own collector writes."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhirl.demos import DemonstrationError, Demonstrations, collect, read_demos, write_demos
from rhirl.demos.interchange import export_minari, import_minari

minari = pytest.importorskip("minari")
h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")

Env = gymnasium.Env[Any, Any]
STEPS = 25


class Screen(gymnasium.Env[Any, Any]):
    """Shows noise, in which JPEG would lose something, and ends after a number of steps drawn at reset."""

    observation_space = gymnasium.spaces.Box(0, 255, (32, 32, 3), np.uint8)
    action_space = gymnasium.spaces.Box(np.array([-1, 0], np.float32), np.array([1, 1], np.float32))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(2, 6))
        return self._show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return self._show(), float(action[0]), self.left == 0, False, {}

    def _show(self) -> np.ndarray:
        return self.np_random.integers(0, 256, (32, 32, 3)).astype(np.uint8)


class Goals(gymnasium.Env[Any, Any]):
    """Observes a dictionary, as goal environments do."""

    observation_space = gymnasium.spaces.Dict({"x": gymnasium.spaces.Box(-1, 1, (2,))})
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return {"x": np.zeros(2, np.float32)}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return {"x": np.ones(2, np.float32)}, 0.0, True, False, {}


class Pusher:
    """Commands a sine, shifted by the seed."""

    def __init__(self, controls: int = 1) -> None:
        self.controls = controls

    def reset(self, seed: int) -> None:
        self.t = float(seed)

    def act(self, env: Env, observation: np.ndarray) -> np.ndarray:
        self.t += 0.3
        return np.full(self.controls, np.sin(self.t), np.float32)


pendulum = partial(gymnasium.make, "Pendulum-v1")


@pytest.fixture(autouse=True)
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def record(env: Env, dataset_id: str, seeds: list[int], **options: Any) -> tuple[list[Any], list[Any], list[float]]:
    """Let Minari's collector record random actions; return what the environment showed, its actions and returns."""
    create = {key: options.pop(key) for key in ("requirements",) if key in options}
    collector = minari.DataCollector(env, **options)
    states: list[list[Any]] = []
    actions: list[list[Any]] = []
    returns: list[float] = []
    for seed in seeds:
        collector.action_space.seed(seed)
        x, _ = collector.reset(seed=seed)
        states.append([x])
        actions.append([])
        returns.append(0.0)
        ended = False
        while not ended:
            actions[-1].append(collector.action_space.sample())
            x, reward, terminated, truncated, _ = collector.step(actions[-1][-1])
            states[-1].append(x)
            returns[-1] += float(reward)
            ended = terminated or truncated
    collector.create_dataset(dataset_id, **create)
    collector.close()
    return [np.array(x) for x in states], [np.array(u) for u in actions], returns


@pytest.fixture
def recorded(datasets: Path) -> tuple[list[Any], list[Any], list[float]]:
    return record(pendulum(max_episode_steps=STEPS), "pendulum/random-v0", [3, 1, 2])


@pytest.fixture
def demos() -> Demonstrations:
    return collect(
        pendulum(),
        Pusher(),
        task="pendulum",
        source="a sine",
        horizon=STEPS,
        noise=0.2,
        seeds=[5, 6],
        packages=["numpy"],
    )


def same(a: Demonstrations, b: Demonstrations) -> None:
    assert a.meta == b.meta
    assert a.observations.dtype == b.observations.dtype
    assert_array_equal(a.observations, b.observations)
    assert_array_equal(a.lengths, b.lengths)


def edit(folder: Path, **changes: Any) -> None:
    """Change a dataset's metadata; None removes an entry."""
    path = folder / "data" / "metadata.json"
    metadata = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in metadata.items() if value is not None}))


def test_what_minaris_collector_wrote_is_read(recorded: Any) -> None:
    states, _, returns = recorded
    demos = import_minari("pendulum/random-v0", task="pendulum")
    assert demos.observations.shape == (3, STEPS + 1, 3)
    assert demos.observations.dtype == np.float32
    assert_array_equal(demos.observations, np.stack(states))
    assert_array_equal(demos.lengths, [STEPS] * 3)
    assert_allclose(demos.meta.returns, returns, rtol=1e-12)
    assert demos.meta.seeds == (3, 1, 2)
    assert (demos.meta.task, demos.meta.env_id, demos.meta.noise) == ("pendulum", "Pendulum-v1", 0.0)
    assert demos.meta.source == "imported from Minari dataset pendulum/random-v0"
    assert demos.controls is None


def test_actions_come_as_controls_when_asked_for(recorded: Any) -> None:
    _, actions, _ = recorded
    demos = import_minari("pendulum/random-v0", task="pendulum", everything=True, horizon=30, noise=0.5)
    assert demos.controls is not None
    assert_array_equal(demos.controls[:, :STEPS], np.stack(actions) / 2)
    assert demos.horizon == 30
    assert demos.meta.noise == 0.5


def test_longer_episodes_are_refused_or_cut(recorded: Any) -> None:
    states, _, _ = recorded
    with pytest.raises(DemonstrationError, match=r"random-v0: episode 0: 25 steps, but the task has 10.*--cut"):
        import_minari("pendulum/random-v0", task="pendulum", horizon=10)
    demos = import_minari("pendulum/random-v0", task="pendulum", horizon=10, cut=True, everything=True)
    assert_array_equal(demos.observations, np.stack(states)[:, :11])
    env = pendulum()
    env.reset(seed=3)
    assert demos.controls is not None
    first = sum(float(env.step(2 * v)[1]) for v in demos.controls[0])
    assert demos.meta.returns[0] == pytest.approx(first, rel=1e-12)


def test_a_dataset_is_found_by_its_folder_too(recorded: Any, datasets: Path) -> None:
    by_id = import_minari("pendulum/random-v0", task="pendulum")
    for folder in (datasets / "pendulum/random-v0", datasets / "pendulum/random-v0/data"):
        assert_array_equal(import_minari(folder, task="pendulum").observations, by_id.observations)
    with pytest.raises(DemonstrationError, match=r"absent-v0: no such folder or local dataset"):
        import_minari("absent-v0", task="pendulum")


def test_images_are_lossless_or_refused() -> None:
    states, actions, _ = record(Screen(), "screen/exact-v0", [0, 1, 2], jpeg_encoding=False)
    demos = import_minari("screen/exact-v0", task="screen", env_id="Screen-v0", everything=True)
    assert demos.observations.dtype == np.uint8
    assert list(demos.lengths) == [len(u) for u in actions]
    assert_array_equal(demos.states(), np.concatenate(states))
    assert demos.controls is not None
    first = demos.controls[0, : len(actions[0])]
    assert_allclose(first, np.stack([actions[0][:, 0], 2 * actions[0][:, 1] - 1], axis=1), atol=1e-6)

    record(Screen(), "screen/jpeg-v0", [0, 1, 2])
    with pytest.raises(DemonstrationError, match=r"JPEG.*jpeg_encoding=False.*--lossy"):
        import_minari("screen/jpeg-v0", task="screen", env_id="Screen-v0")
    lossy = import_minari("screen/jpeg-v0", task="screen", env_id="Screen-v0", lossy=True)
    assert lossy.observations.shape == demos.observations.shape
    assert (lossy.states() != demos.states()).any()


def test_what_the_dataset_does_not_say_must_be_named(recorded: Any) -> None:
    with pytest.raises(DemonstrationError, match=r"name the task"):
        import_minari("pendulum/random-v0")
    with pytest.raises(DemonstrationError, match=r"environment Pendulum-v1, not Hopper-v5"):
        import_minari("pendulum/random-v0", task="hopper", env_id="Hopper-v5")
    record(Screen(), "screen/exact-v0", [0], jpeg_encoding=False)
    with pytest.raises(DemonstrationError, match=r"name the env_id"):
        import_minari("screen/exact-v0", task="screen")


def test_versions_a_dataset_requires_exactly_are_checked() -> None:
    env = pendulum(max_episode_steps=3)
    record(env, "old-v0", [0], requirements=["numpy==1.0.*", "gymnasium>=0.29", "jax == 0.1.2"])
    with pytest.raises(DemonstrationError, match=r"made with numpy 1\.0, but .*--force"):
        import_minari("old-v0", task="pendulum")
    demos = import_minari("old-v0", task="pendulum", force=True)
    assert demos.meta.versions == {"numpy": "1.0", "jax": "0.1.2"}


def test_dictionaries_are_refused() -> None:
    record(Goals(), "goals-v0", [0])
    with pytest.raises(DemonstrationError, match=r"goals-v0: observations: Dict, but arrays"):
        import_minari("goals-v0", task="goals", env_id="Goals-v0")


def test_round_trip_loses_nothing(demos: Demonstrations, datasets: Path, tmp_path: Path) -> None:
    folder = export_minari(demos, "pendulum/noise02-v0", pendulum())
    assert folder == datasets / "pendulum/noise02-v0"
    again = import_minari(folder, everything=True)
    same(again, demos)
    assert demos.controls is not None
    assert again.controls is not None
    assert_array_equal(again.controls, demos.controls)
    write_demos(again, tmp_path / "demos.npz")
    same(read_demos(tmp_path / "demos.npz", task="pendulum"), demos)


def test_minari_reads_what_was_exported(demos: Demonstrations) -> None:
    export_minari(demos, "pendulum/sine-v0", pendulum(), author="me")
    data = minari.load_dataset("pendulum/sine-v0")
    assert data.total_episodes == 2
    assert data.env_spec.id == "Pendulum-v1"
    metadata = data.storage.metadata
    assert metadata["rhirl"]["noise"] == 0.2
    assert metadata["rhirl"]["versions"] == {"numpy": np.__version__}
    assert metadata["requirements"] == [f"numpy=={np.__version__}"]
    assert (metadata["author"], metadata["algorithm_name"]) == ({"me"}, "a sine")
    assert demos.controls is not None
    for i, episode in enumerate(data):
        assert_array_equal(episode.observations, demos.observations[i])
        assert_array_equal(episode.actions, 2 * demos.controls[i])
        assert np.abs(episode.actions).max() > 1
        assert episode.rewards.sum() == pytest.approx(demos.meta.returns[i], rel=1e-12)
        assert not episode.terminations.any()
        assert_array_equal(np.flatnonzero(episode.truncations), [STEPS - 1])
    assert [note["seed"] for note in data.storage.get_episode_metadata([0, 1])] == [5, 6]


def test_images_and_early_ends_survive_the_round_trip() -> None:
    demos = collect(
        Screen(), Pusher(2), task="screen", source="a sine", horizon=8, noise=0.0, seeds=[0, 1, 2], packages=[]
    )
    assert len(set(demos.lengths)) > 1
    export_minari(demos, "screen-v0", Screen())
    same(import_minari("screen-v0", task="screen", env_id="Screen", noise=0.0), demos)
    for episode, length in zip(minari.load_dataset("screen-v0"), demos.lengths, strict=True):
        assert len(episode) == length
        assert_array_equal(np.flatnonzero(episode.terminations), [length - 1])
        assert not episode.truncations.any()


def test_rewards_that_cannot_be_replayed_are_unknown_not_invented(demos: Demonstrations) -> None:
    moved = replace(demos, meta=replace(demos.meta, seeds=(5, -1)))
    x = demos.observations.copy()
    x[0, 7] += 1e-3
    export_minari(replace(moved, observations=x), "moved-v0", pendulum())
    for episode in minari.load_dataset("moved-v0"):
        assert np.isnan(episode.rewards).all()
    again = import_minari("moved-v0")
    assert again.meta == moved.meta


def test_exported_datasets_know_what_they_are(demos: Demonstrations) -> None:
    export_minari(demos, "sine-v0", pendulum())
    for wrong in ({"task": "hopper"}, {"env_id": "Hopper-v5"}, {"noise": 0.5}):
        with pytest.raises(DemonstrationError, match=r"sine-v0: demonstrations of .*, not"):
            import_minari("sine-v0", **wrong)


def test_exports_that_cannot_be_are_refused_and_leave_nothing(
    demos: Demonstrations, datasets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DemonstrationError, match=r"these demonstrations have none.*everything=True"):
        export_minari(replace(demos, controls=None), "sine-v0", pendulum())
    with pytest.raises(DemonstrationError, match=r"shape \(3,\).*\(32, 32, 3\)"):
        export_minari(demos, "sine-v0", Screen())
    with pytest.raises(DemonstrationError, match=r"2 controls"):
        export_minari(replace(demos, controls=np.zeros((2, STEPS, 2), np.float32)), "sine-v0", pendulum())
    for bad in ("sine", "../sine-v0", "a b-v0", "/sine-v0"):
        with pytest.raises(DemonstrationError, match=r"looks like"):
            export_minari(demos, bad, pendulum())

    def fails(*_: Any) -> None:
        raise OSError("disk full")

    storage = sys.modules["minari.dataset.minari_storage"]
    with monkeypatch.context() as patch:
        patch.setattr(storage.MinariStorage, "update_metadata", fails)
        with pytest.raises(OSError, match="disk full"):
            export_minari(demos, "sine-v0", pendulum())
    assert not (datasets / "sine-v0").exists()
    export_minari(demos, "sine-v0", pendulum())
    with pytest.raises(DemonstrationError, match=r"sine-v0: exists already"):
        export_minari(demos, "sine-v0", pendulum())


def test_no_environment_is_built_from_a_file(recorded: Any, datasets: Path, tmp_path: Path) -> None:
    folder = datasets / "pendulum/random-v0"
    spec = json.loads(json.loads((folder / "data/metadata.json").read_text())["env_spec"])
    spec |= {"entry_point": "pathlib:Path.mkdir", "kwargs": {"self": str(tmp_path / "executed")}}
    edit(folder, env_spec=json.dumps(spec), observation_space=None)
    with pytest.raises(DemonstrationError, match=r"observation_space: not stated"):
        import_minari("pendulum/random-v0", task="pendulum")
    assert not (tmp_path / "executed").exists()


def test_files_that_point_elsewhere_or_claim_too_much_are_refused(recorded: Any, datasets: Path) -> None:
    path = datasets / "pendulum/random-v0/data/main_data.hdf5"
    with h5py.File(path, "a") as file:
        file["episode_0/secret"] = h5py.ExternalLink("elsewhere.hdf5", "/")
    with pytest.raises(DemonstrationError, match=r"episode_0/secret: points elsewhere"):
        import_minari("pendulum/random-v0", task="pendulum")
    with h5py.File(path, "a") as file:
        del file["episode_0/secret"]
        file.create_dataset("episode_0/infos/huge", (2**40,), np.uint8, chunks=(1024,))
    with pytest.raises(DemonstrationError, match=r"unpacks to \d+ bytes"):
        import_minari("pendulum/random-v0", task="pendulum")


def test_broken_datasets_are_named(recorded: Any, datasets: Path) -> None:
    folder = datasets / "pendulum/random-v0"
    load = partial(import_minari, "pendulum/random-v0", task="pendulum")
    path = folder / "data/main_data.hdf5"
    whole = path.read_bytes()
    with h5py.File(path, "a") as file:
        states = file["episode_1/observations"][()]
        del file["episode_1/observations"]
        file["episode_1/observations"] = states[:-1]
    with pytest.raises(
        DemonstrationError, match=r"random-v0: episode 1: observations: shape \(25, 3\), not \(26, 3\)"
    ):
        load()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DemonstrationError, match=r"random-v0: not readable"):
        load()
    path.write_bytes(whole)
    for changes, message in (
        ({"data_format": "arrow"}, "only hdf5"),
        ({"data_format": "hdf5", "rhirl": {"horizon": 25}}, "format is not"),
        ({"rhirl": [1]}, "rhirl: horizon: missing"),
        ({"rhirl": None, "total_episodes": 4}, "not readable"),
        ({"total_episodes": 0}, "no episodes"),
        ({"minari_version": "9.9.9"}, "not readable"),
    ):
        edit(folder, **changes)
        with pytest.raises(DemonstrationError, match=message):
            load()
    (folder / "data/metadata.json").write_text("[1]")
    with pytest.raises(DemonstrationError, match=r"random-v0: not readable"):
        load()


def test_without_minari_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, demos: Demonstrations
) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    for attempt in (partial(import_minari, "a-v0", task="a"), partial(export_minari, demos, "a-v0", pendulum())):
        with pytest.raises(ImportError, match=r"rhirl\[minari\]"):
            attempt()


def test_the_code_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "demonstrations.md").read_text()
    bundled, *blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert 'load_demos("pendulum", noise=0.2)' in bundled
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["about"]["episodes"] == 5
    assert list(read_demos("mine.npz").lengths) == [2, 1]
    assert (tmp_path / "spin.png").stat().st_size > 10_000
