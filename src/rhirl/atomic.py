"""The one way files are written here: whole or not at all, whatever happens meanwhile.

The content goes to disk under a temporary name, and only then takes the place of what was there. A process that is
killed, or a machine that loses power, leaves the old file or the new one, never a part of one.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file, and its folder where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
