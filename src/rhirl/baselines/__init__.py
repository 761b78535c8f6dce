"""The rivals: f-IRL, AIRL, GAIL and behaviour cloning, with the same `learn / step / cost / act` face as RHIRL."""

from rhirl.baselines.airl import AIRL, AIRLConfig
from rhirl.baselines.bc import BC, BCConfig
from rhirl.baselines.environments import ControlNoise, LearnedReward
from rhirl.baselines.firl import FIRL, FIRLConfig
from rhirl.baselines.gail import GAIL, GAILConfig
from rhirl.baselines.imitation import Imitator
from rhirl.baselines.practice import ImitationConfig
from rhirl.baselines.reoptimise import Reoptimise

__all__ = [
    "AIRL",
    "BC",
    "FIRL",
    "GAIL",
    "AIRLConfig",
    "BCConfig",
    "ControlNoise",
    "FIRLConfig",
    "GAILConfig",
    "ImitationConfig",
    "Imitator",
    "LearnedReward",
    "Reoptimise",
]
