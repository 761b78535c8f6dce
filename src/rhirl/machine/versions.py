"""What a run is done with: a number is worth something only beside the versions that it follows from."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

from rhirl.simulators.threads import usable_cores

PACKAGES = ("rhirl", "jax", "equinox", "optax", "numpy", "numba", "gymnasium", "mujoco", "Box2D")


def surroundings() -> dict[str, Any]:
    """Describe what a run is done with: versions, processor, threads."""
    return {
        "versions": {name: version for name in PACKAGES if (version := _version(name)) is not None},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": usable_cores(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
