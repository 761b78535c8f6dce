"""What of a run must come out the same anywhere, however often it was killed: everything but times and cores."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rhirl.machine import surroundings

ABOUT_THE_MACHINE = {"timing.json", "meta.json"}


def fingerprint(root: Path) -> dict[str, str]:
    """Return a SHA-256 of each file below a folder, by path, leaving out what tells of times and machines."""
    paths = (path for path in sorted(root.rglob("*")) if path.is_file() and path.name not in ABOUT_THE_MACHINE)
    return {str(path.relative_to(root)): hashlib.sha256(_content(path)).hexdigest() for path in paths}


def _content(path: Path) -> bytes:
    if path.suffix == ".jsonl":
        return json.dumps([_timeless(json.loads(line)) for line in path.read_text().splitlines()]).encode()
    if path.suffix == ".json":
        return json.dumps(_timeless(json.loads(path.read_text()))).encode()
    return path.read_bytes()


def _timeless(values: dict[str, Any]) -> dict[str, Any]:
    about = surroundings().keys()
    return {name: value for name, value in values.items() if not name.startswith("time/") and name not in about}
