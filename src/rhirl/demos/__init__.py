"""The demonstration file: read, validate, write, collect."""

from rhirl.demos.bundled import bundled_demos, bundled_path, load_demos
from rhirl.demos.collect import Agent, Episode, collect, disturbed, run_episode, to_action
from rhirl.demos.demonstrations import DemonstrationError, Demonstrations, Metadata, from_episodes, validate
from rhirl.demos.files import read_demos, sha256, write_demos

__all__ = [
    "Agent",
    "DemonstrationError",
    "Demonstrations",
    "Episode",
    "Metadata",
    "bundled_demos",
    "bundled_path",
    "collect",
    "disturbed",
    "from_episodes",
    "load_demos",
    "read_demos",
    "run_episode",
    "sha256",
    "to_action",
    "validate",
    "write_demos",
]
