"""Minari in and out: datasets that other libraries of the field read and write.

| Minari                        | here                                                                             |
|-------------------------------|----------------------------------------------------------------------------------|
| `observations` (L + 1, *n)    | `observations`, float32 or bytes                                                 |
| `actions` (L, m), raw units   | `controls`, scaled to [-1, 1]; imported only if `everything` is asked for        |
| `rewards` (L,)                | their sum is the return                                                          |
| `terminations`, `truncations` | an episode shorter than T is one that the environment ended                      |
| `rhirl` in the metadata       | task, noise, returns, seeds, source, versions and T: what comes back is the same |

Demonstrations keep no rewards. On export they are found by replaying the controls from the episode's seed, which
must lead through the very same states; otherwise they are written as NaN. Needs the extra `rhirl[minari]`.
"""

from __future__ import annotations

import importlib
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.demos.collect import Env, to_action
from rhirl.demos.demonstrations import DemonstrationError, Demonstrations, Metadata, from_episodes
from rhirl.demos.files import check_versions, describe, parse
from rhirl.demos.minari_files import Recording, dataset_folder, minari, read_dataset
from rhirl.demos.tables import as_states, naming, task_length

OURS = "rhirl"  # our entry in a dataset's metadata


def import_minari(
    dataset: str | Path,
    *,
    task: str | None = None,
    env_id: str | None = None,
    horizon: int | None = None,
    noise: float | None = None,
    cut: bool = False,
    everything: bool = False,
    lossy: bool = False,
    force: bool = False,
) -> Demonstrations:
    """Import the episodes of a local Minari dataset. Nothing is downloaded.

    Args:
        dataset: Its id, `mujoco/hopper/expert-v0`, or its folder.
        task: The task that is demonstrated. A dataset that says otherwise is refused.
        env_id: Its environment. A dataset that says otherwise is refused.
        horizon: T, the length of the task; what the dataset says, or the longest episode's length by default.
        noise: The control noise while demonstrating. A dataset that says otherwise is refused.
        cut: Keep the first T steps of episodes that are longer, instead of refusing them.
        everything: Also import the actions, as controls.
        lossy: Accept images that were stored as JPEG, which are not those the environment showed.
        force: Accept demonstrations made with other simulator versions than those installed.
    """
    name = f"Minari dataset {dataset}"
    recording = read_dataset(dataset, name)
    _check_observations(recording, name, lossy=lossy)
    episodes = recording.episodes
    exported = _exported(recording, name)
    if exported is not None:
        meta, exported_horizon = exported
        horizon = exported_horizon if horizon is None else horizon
    else:
        meta = _foreign(recording, name, task=task, env_id=env_id, noise=noise)
    said = (("task", task, meta.task), ("environment", env_id, meta.env_id), ("noise", noise, meta.noise))
    for what, wanted, found in said:
        if wanted is not None and wanted != found:
            raise DemonstrationError(f"{name}: demonstrations of {what} {found}, not {wanted}")
    if not force:
        check_versions(meta, name)
    T = task_length([len(episode.rewards) for episode in episodes], horizon, cut=cut, name=name)
    returns = [
        r if len(e.rewards) <= T else float(np.sum(e.rewards[:T]))
        for r, e in zip(meta.returns, episodes, strict=True)
    ]
    controls = [_to_control(recording.action_space, e.actions[:T], name) for e in episodes] if everything else None
    states = [as_states(e.observations[: T + 1], f"{name}: episode {i}") for i, e in enumerate(episodes)]
    with naming(name):
        return from_episodes(states, replace(meta, returns=tuple(returns)), horizon=T, controls=controls)


def export_minari(
    demos: Demonstrations, dataset_id: str, env: Env, *, author: str | None = None, description: str | None = None
) -> Path:
    """Write demonstrations, with their controls, to Minari's local datasets and return the dataset's folder.

    Args:
        demos: What to export. Controls must have been read: `read_demos(path, everything=True)`.
        dataset_id: What to call it: `hopper/noise02-v0`.
        env: The demonstrated environment, which says what the controls' units are. It is reset and stepped.
        author: Who to name as the author.
        description: What to say about it.
    """
    library = minari()
    controls = demos.controls
    if controls is None:
        raise DemonstrationError(
            "Minari keeps the control of every step, but these demonstrations have none: "
            "read them with everything=True, or collect them anew"
        )
    demos.check_fits(env.observation_space.shape or ())
    if env.action_space.shape != controls.shape[2:]:
        raise DemonstrationError(
            f"demonstrations have {controls.shape[2]} controls, the environment's actions are {env.action_space}"
        )
    if not re.fullmatch(r"([-\w]+/)*[-\w]+-v\d+", dataset_id):
        raise DemonstrationError(f"{dataset_id}: a Minari id looks like hopper/expert-v0")
    folder = dataset_folder(dataset_id)
    if folder.exists():
        raise DemonstrationError(f"{dataset_id}: exists already; choose another name or version")
    buffers = [_buffer(demos, controls, i, env) for i in range(len(demos))]
    about = f"{len(demos)} demonstrations of {demos.meta.task} under control noise {demos.meta.noise:g}."
    try:
        with warnings.catch_warnings():
            # Minari asks for authors, e-mail addresses and links; whoever has some can name them.
            warnings.simplefilter("ignore", UserWarning)
            data = library.create_dataset_from_buffers(
                dataset_id,
                buffers,
                env=env,
                observation_space=_space_of(demos),
                action_space=env.action_space,
                algorithm_name=demos.meta.source,
                author=author,
                description=description if description is not None else about,
                requirements=[f"{package}=={version}" for package, version in demos.meta.versions.items()],
                jpeg_encoding=False,
            )
        data.storage.update_metadata({OURS: {**describe(demos.meta), "horizon": demos.horizon}})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _check_observations(recording: Recording, name: str, *, lossy: bool) -> None:
    space = recording.observation_space
    if not isinstance(space, gymnasium.spaces.Box):
        raise DemonstrationError(
            f"{name}: observations: {type(space).__name__}, but arrays (Box) are wanted; "
            "save the part you want as .npz and import that"
        )
    image = importlib.import_module("minari.dataset.minari_storage").is_image_space(space)
    if image and recording.metadata.get("jpeg_encoding", True) and not lossy:
        raise DemonstrationError(
            f"{name}: observations: JPEG images, which are not those the environment showed; record them "
            "with DataCollector(env, jpeg_encoding=False), or accept them with lossy=True (--lossy)"
        )
    for i, episode in enumerate(recording.episodes):
        wanted = (len(episode.rewards) + 1, *space.shape)
        if np.shape(episode.observations) != wanted:
            raise DemonstrationError(
                f"{name}: episode {i}: observations: shape {np.shape(episode.observations)}, not {wanted}"
            )


def _exported(recording: Recording, name: str) -> tuple[Metadata, int] | None:
    """Return what we wrote into the dataset, and T, if it was exported from here."""
    ours = recording.metadata.get(OURS)
    if ours is None:
        return None
    if not isinstance(ours, dict) or not isinstance(ours.get("horizon"), int):
        raise DemonstrationError(f"{name}: metadata: {OURS}: horizon: missing")
    meta = parse({key: value for key, value in ours.items() if key != "horizon"}, name)
    if len(meta.returns) != len(recording.episodes):
        raise DemonstrationError(
            f"{name}: metadata: {OURS}: {len(meta.returns)} returns for {len(recording.episodes)} episodes"
        )
    return meta, ours["horizon"]


def _foreign(
    recording: Recording, name: str, *, task: str | None, env_id: str | None, noise: float | None
) -> Metadata:
    """What a dataset from elsewhere tells, completed by what the caller knows."""
    env_id = recording.env_id or env_id
    if task is None or env_id is None:
        raise DemonstrationError(
            f"{name}: does not say what it demonstrates: name the {'task' if task is None else 'env_id'}"
        )
    return Metadata(
        task=task,
        env_id=env_id,
        noise=noise or 0.0,
        returns=tuple(float(np.sum(episode.rewards)) for episode in recording.episodes),
        seeds=tuple(-1 if episode.seed is None else episode.seed for episode in recording.episodes),
        source=f"imported from {name}",
        versions=_pinned(recording.metadata.get("requirements", [])),
    )


def _pinned(requirements: list[str]) -> dict[str, str]:
    """Versions of packages that a dataset requires exactly: those its states were made with."""
    matches = (re.fullmatch(r"([\w.-]+)\s*==\s*(\d[\w.]*?)(\.\*)?", text.strip()) for text in requirements)
    return {match[1]: match[2] for match in matches if match}


def _to_control(space: gymnasium.Space[Any], actions: Any, name: str) -> NDArray[np.float32]:
    """Scale actions (L, m) from the environment's box to [-1, 1]."""
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1 or not space.is_bounded():
        raise DemonstrationError(f"{name}: actions: {space} cannot be scaled to [-1, 1]: import the states alone")
    middle, half = (space.high + space.low) / 2, (space.high - space.low) / 2
    return np.clip((actions - middle) / half, -1, 1).astype(np.float32)


def _space_of(demos: Demonstrations) -> gymnasium.spaces.Box:
    if demos.observations.dtype == np.uint8:
        return gymnasium.spaces.Box(0, 255, demos.observation_shape, np.uint8)
    return gymnasium.spaces.Box(-np.inf, np.inf, demos.observation_shape, np.float32)


def _buffer(demos: Demonstrations, controls: NDArray[np.float32], i: int, env: Env) -> Any:
    """One episode for Minari."""
    L, seed = int(demos.lengths[i]), demos.meta.seeds[i]
    x, actions = demos.observations[i, : L + 1], to_action(env, controls[i, :L])
    rewards = _replay(env, x, actions, seed) if seed >= 0 else None
    terminations = np.zeros(L, bool)
    terminations[-1] = demos.horizon > L
    truncations = np.zeros(L, bool)
    truncations[-1] = not terminations[-1]
    return importlib.import_module("minari.data_collector").EpisodeBuffer(
        id=i,
        seed=seed if seed >= 0 else None,
        observations=x,
        actions=actions,
        rewards=np.full(L, np.nan) if rewards is None else rewards,
        terminations=terminations,
        truncations=truncations,
    )


def _replay(env: Env, x: NDArray[Any], actions: NDArray[Any], seed: int) -> NDArray[np.float64] | None:
    """Return the rewards of an episode if its actions lead through its states x here, too."""
    observation, _ = env.reset(seed=seed)
    rewards = []
    for t, action in enumerate(actions):
        if not np.array_equal(np.asarray(observation, x.dtype), x[t]):
            return None
        observation, reward, *_ = env.step(action)
        rewards.append(float(reward))
    return np.array(rewards) if np.array_equal(np.asarray(observation, x.dtype), x[-1]) else None
