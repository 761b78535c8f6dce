"""Every way to learn, at work in a run: RHIRL (`ours`, `rehearsing`) and its `rivals`.

All have the face of a `learner`, and `registry` finds them by name.
"""

from rhirl.experiments.methods.learner import Learner
from rhirl.experiments.methods.registry import METHODS, get_method

__all__ = ["METHODS", "Learner", "get_method"]
