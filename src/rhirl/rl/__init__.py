"""Soft actor-critic in JAX: it trains the experts that demonstrate, and drives the baselines.

sac = SAC(SACConfig(), partial(gymnasium.make, "Hopper-v5"), horizon=1000)
for round in sac.train(steps=300_000):
...                                   # show progress, sac.save(path), or stop
sac.policy().save(Path("policy.safetensors"))
"""

from rhirl.rl.networks import Actor, Critic, act, log_density, to_numpy
from rhirl.rl.policy import Policy
from rhirl.rl.replay import Replay, Transitions
from rhirl.rl.sac import Learner, Reward, SACConfig
from rhirl.rl.trainer import SAC, Round
from rhirl.rl.vector import Environments, evaluate
from rhirl.rl.workers import Workers

__all__ = [
    "SAC",
    "Actor",
    "Critic",
    "Environments",
    "Learner",
    "Policy",
    "Replay",
    "Reward",
    "Round",
    "SACConfig",
    "Transitions",
    "Workers",
    "act",
    "evaluate",
    "log_density",
    "to_numpy",
]
