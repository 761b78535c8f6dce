"""Read a Minari dataset as data only.

Where a dataset does not state its spaces, Minari builds an environment from whatever module the file names; and
HDF5 can point at other files, or claim any size. Such datasets are refused before Minari opens them.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rhirl.demos.demonstrations import DemonstrationError
from rhirl.demos.files import LARGEST


class Recorded(NamedTuple):
    """An episode of L steps as Minari has it."""

    observations: Any
    """(L + 1, *n) where they are arrays."""
    actions: Any
    """(L, m) where they are arrays, in the environment's units."""
    rewards: NDArray[Any]
    seed: int | None


class Recording(NamedTuple):
    """A dataset."""

    metadata: dict[str, Any]
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    env_id: str | None
    episodes: list[Recorded]


def minari() -> Any:
    """Import Minari, or say how to install it."""
    try:
        importlib.import_module("h5py")
        return importlib.import_module("minari")
    except ImportError as error:
        raise ImportError(f'Minari is not installed ({error}): pip install "rhirl[minari]"') from None


def dataset_folder(dataset_id: str) -> Path:
    """Return where Minari keeps a dataset, whether or not it exists."""
    minari()
    return Path(importlib.import_module("minari.storage.datasets_root_dir").get_dataset_path(dataset_id))


def read_dataset(dataset: str | Path, name: str) -> Recording:
    """Read a local dataset by its id or its folder; errors begin with the name."""
    library = minari()
    for folder in (Path(dataset), Path(dataset) / "data", dataset_folder(str(dataset)) / "data"):
        if (folder / "metadata.json").is_file():
            break
    else:
        raise DemonstrationError(f"{name}: no such folder or local dataset; `minari download` fetches public ones")
    with _broken_files(name):
        metadata = json.loads((folder / "metadata.json").read_text())
        _check_metadata(metadata, name)
        _check_hdf5(folder / "main_data.hdf5", name)
        data = library.MinariDataset(folder)
        notes = data.storage.get_episode_metadata(data.episode_indices)
        return Recording(
            metadata,
            data.observation_space,
            data.action_space,
            data.env_spec.id if data.env_spec is not None else None,
            [
                Recorded(e.observations, e.actions, np.asarray(e.rewards), n.get("seed"))
                for e, n in zip(data, notes, strict=True)
            ],
        )


@contextmanager
def _broken_files(name: str) -> Iterator[None]:
    """Turn what two libraries may raise over a broken file into one kind of error."""
    try:
        yield
    except DemonstrationError:
        raise
    except (AssertionError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise DemonstrationError(f"{name}: not readable ({type(error).__name__}: {error})") from None


def _check_metadata(metadata: Any, name: str) -> None:
    if metadata["data_format"] != "hdf5":
        raise DemonstrationError(f"{name}: data_format {metadata['data_format']}: only hdf5 is read")
    for space in ("observation_space", "action_space"):
        if not isinstance(metadata.get(space), str):
            raise DemonstrationError(f"{name}: {space}: not stated, and no environment is built to find out")


def _check_hdf5(path: Path, name: str) -> None:
    h5py: Any = importlib.import_module("h5py")
    sizes: list[int] = []

    def leads_out(link_name: str, link: Any) -> str | None:
        return None if isinstance(link, h5py.HardLink) else link_name

    def weigh(item_name: str, item: Any) -> str | None:
        if not isinstance(item, h5py.Dataset):
            return None
        sizes.append(item.nbytes)
        return item_name if item.external or item.is_virtual else None

    with h5py.File(path, "r") as file:
        elsewhere = file.visititems_links(leads_out) or file.visititems(weigh)
    if elsewhere:
        raise DemonstrationError(f"{name}: {elsewhere}: points elsewhere, and no other file is opened")
    if sum(sizes) > LARGEST:
        raise DemonstrationError(f"{name}: unpacks to {sum(sizes)} bytes, more than the {LARGEST} allowed")
