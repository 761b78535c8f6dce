"""The demonstration file: read, validate, write, collect, inspect, bring in and hand out."""

from rhirl.demos.bundled import bundled_demos, bundled_path, load_demos
from rhirl.demos.collect import Agent, Episode, collect, disturbed, run_episode, to_action
from rhirl.demos.demonstrations import DemonstrationError, Demonstrations, Metadata, from_episodes, validate
from rhirl.demos.files import read_demos, sha256, write_demos
from rhirl.demos.inspect import plot, summary
from rhirl.demos.interchange import export_minari, import_minari
from rhirl.demos.tables import import_table

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
    "export_minari",
    "from_episodes",
    "import_minari",
    "import_table",
    "load_demos",
    "plot",
    "read_demos",
    "run_episode",
    "sha256",
    "summary",
    "to_action",
    "validate",
    "write_demos",
]
