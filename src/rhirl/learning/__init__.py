"""RHIRL: the objective, its gradient, the training loop, and the learner's state as one pytree."""

from rhirl.learning.config import Config
from rhirl.learning.control_step import Metrics
from rhirl.learning.controller import Controller
from rhirl.learning.danger import Danger, before_astray, gamma_of, learn_danger
from rhirl.learning.episodes import Episodes
from rhirl.learning.explain import Explained, explain, explain_episode, scale_of
from rhirl.learning.guide import Guide, Proposal
from rhirl.learning.rhirl import RHIRL
from rhirl.learning.state import LearnerState

__all__ = [
    "RHIRL",
    "Config",
    "Controller",
    "Danger",
    "Episodes",
    "Explained",
    "Guide",
    "LearnerState",
    "Metrics",
    "Proposal",
    "before_astray",
    "explain",
    "explain_episode",
    "gamma_of",
    "learn_danger",
    "scale_of",
]
