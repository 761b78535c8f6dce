"""CarRacing from images: drive a lap of a track nobody has seen, within 1000 steps.

The environment is Gymnasium's CarRacing-v3 behind two controls in [-1, 1]: steering, and one pedal that gives gas
above zero and brakes below. What a learner sees are the simulator's frames: Gymnasium's picture once its camera has
zoomed in, at half the size and in grey, without the score, which would tell the reward. Learner and planner hold
each control for four steps of the environment (0.08 s), so that ten frames look 0.8 s ahead.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import gymnasium

from rhirl.demos import DemonstrationError, Demonstrations, from_episodes
from rhirl.demos.bundled import DATA
from rhirl.demos.recordings import SUFFIX, Play, Recordings, read_recordings
from rhirl.simulators import EnvironmentSimulator
from rhirl.tasks.task import Task, paper_returns

HOLD = 4


class CarRacingTask(Task):
    """A task whose environment is driven by two controls instead of Gymnasium's three."""

    def make_env(self, **kwargs: Any) -> gymnasium.Env[Any, Any]:
        """Make the environment, without a time limit of its own."""
        from rhirl.simulators.car_racing import TwoControls

        return TwoControls(super().make_env(**kwargs))

    def make_scored_env(self) -> gymnasium.Env[Any, Any]:
        """Make the same environment without the drawing: agents plan from its state, and nobody would look."""
        from rhirl.simulators.car.track import UndrawnCarRacing
        from rhirl.simulators.car_racing import TwoControls

        return TwoControls(UndrawnCarRacing())

    def demonstrations(
        self, noise: float = 0.0, *, episodes: int | None = None, force: bool = False, everything: bool = False
    ) -> Demonstrations:
        """Play the bundled recordings in the simulator, which then knows the state behind every frame."""
        recordings, simulator = car_recordings(noise, force=force), planning_simulator()
        recordings = recordings if episodes is None else recordings.take(episodes)
        shown = [simulator.play(*recordings.episode(i)) for i in range(len(recordings))]
        return from_episodes(shown, recordings.meta, horizon=self.T // self.hold)

    def demonstrations_path(self, noise: float = 0.0) -> Path:
        """Return the bundled recordings."""
        return DATA / f"{self.name}-noise{noise:g}{SUFFIX}"


@cache
def planning_simulator() -> Any:
    """Return the simulator that learners plan with: one for all, as it remembers what was played."""
    from rhirl.simulators.car.render import View  # Box2D is an extra, needed by this task only
    from rhirl.simulators.car_held import HeldCarRacingSimulator

    return HeldCarRacingSimulator(hold=HOLD, view=View(2, grey=True, looks=8))


def _simulator() -> EnvironmentSimulator:
    return planning_simulator()


def car_recordings(noise: float = 0.0, *, force: bool = False) -> Recordings:
    """Read the bundled recordings of the expert at control noise σ."""
    path = DATA / f"car_racing-noise{noise:g}{SUFFIX}"
    if not path.exists():
        raise DemonstrationError(
            f"no demonstrations of car_racing at σ = {noise:g} are bundled: see benchmarks/car_expert.py record"
        )
    return read_recordings(path, force=force)


def car_demos(play: Play, noise: float = 0.0, *, episodes: int | None = None) -> Demonstrations:
    """Draw the bundled demonstrations: `play` is that of a `CarRacingSimulator`, in its view.

    At 96 x 96 x 3 an episode takes 28 MB.
    """
    recordings = car_recordings(noise)
    return (recordings if episodes is None else recordings.take(episodes)).demonstrations(play)


COMMON = {"hidden": (64, 64), "lr": 1e-4, "weight_decay": 8e-5}
PUBLISHED = {"K": 15, "M": 200, "beta": 1.0, "alpha": 0.5, "lam": 0.1, "control_term": 1.0, "nominal": False}

CAR_RACING = CarRacingTask(
    name="car_racing",
    env_id="CarRacing-v3",
    T=1000,
    observation_dim=48 * 48,
    control_dim=2,
    simulator=_simulator,
    packages=("gymnasium", "Box2D"),
    demonstrator="driver",
    hold=HOLD,
    presets={
        "paper": {"planner": PUBLISHED, "parallel": 1, "average": 0.0, **COMMON, "iterations": 100_000},
        "default": {
            "planner": {"K": 10, "M": 48, "beta": 0.3, "ess": 0.1, "knots": 4},
            "deploy": {"K": 10, "M": 64, "beta": 0.3, "ess": 0.1, "knots": 4},
            "parallel": 4,
            "starts": 0.7,
            "span": 50,
            "lessons": 12,
            "penalty": 1.0,
            "average": 0.99,
            **COMMON,
            "lr": 3e-4,
            "iterations": 600,
        },
    },
    paper=paper_returns(
        expert=(903.25, 702.01, 281.12),
        rhirl=(359.61, 206.21, 53.97),
        firl=(85.45, 18.32, 2.04),
        airl=(-21.97, -25.25, -32.31),
        gail=(2.62, -7.65, -15.88),
    ),
)
