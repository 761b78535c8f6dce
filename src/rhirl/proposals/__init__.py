"""The policy that proposes plans to the planner, in the order it comes to be.

The simulator explains demonstrated states by controls (`explanations`), an apprentice clones those (`apprentice`)
and, amid noise, rehearses by the learned cost (`rehearsal`).
"""

from rhirl.proposals.apprentice import Apprentice, Note, Practice, learn_proposal, untrained_proposal
from rhirl.proposals.explanations import explanation
from rhirl.proposals.rehearsal import Rehearsal, Rehearsed, Report

__all__ = [
    "Apprentice",
    "Note",
    "Practice",
    "Rehearsal",
    "Rehearsed",
    "Report",
    "explanation",
    "learn_proposal",
    "untrained_proposal",
]
