"""Pendulum with process noise: not a task of the paper, but of its extension to stochastic dynamics.

The noise on ω has the size of what full torque does to it in a step (3 · 2 N m · 0.05 s = 0.3 rad/s). Whoever plans
knows how strong the wind is, never when it blows; `M_s` says over how many gusts each control sequence is averaged.
"""

from dataclasses import replace

from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.simulators.windy_pendulum import ENV_ID
from rhirl.tasks.pendulum import PENDULUM

WIND = 0.3

WINDY_PENDULUM = replace(
    PENDULUM,
    name="windy_pendulum",
    env_id=ENV_ID,
    env_kwargs={"process_noise": WIND},
    simulator=lambda: PendulumSimulator(process_noise=WIND),
    expert_of="pendulum",
    paper={},
)
