"""What a benchmark task is: an environment, its length, its simulator, its presets and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import gymnasium

from rhirl.demos import Demonstrations, bundled_path, load_demos
from rhirl.simulators import EnvironmentSimulator


@dataclass(frozen=True)
class Task:
    """One benchmark task. A new task is one file with one of these, and one line in `rhirl.tasks`."""

    name: str
    """What people type: `pendulum`."""
    env_id: str
    """The Gymnasium environment that is scored."""
    T: int
    """Length of the task in control steps; episodes are cut there."""
    observation_dim: int
    control_dim: int
    simulator: Callable[[], EnvironmentSimulator]
    """Makes the planner's simulator."""
    presets: Mapping[str, Mapping[str, Any]]
    """Hyper-parameters by preset name, as fields of the learner's configuration; `planner` holds those of MPPI."""
    paper: Mapping[str, Mapping[str, float]]
    """The paper's mean returns (table 4): `{"expert": {"0": …, "0.2": …, "0.5": …}, "rhirl": {…}, …}`."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ("gymnasium",)
    """Packages whose version decides what the states are; demonstrations made with others are refused."""
    expert: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the SAC that trains an expert on a CPU; `steps` says for how long."""
    expert_of: str | None = None
    """The task whose bundled expert demonstrates here, where that is another one."""
    demonstrator: Literal["policy", "driver"] = "policy"
    """Who demonstrates: a trained policy, or a driver who plans on the environment's own reward."""
    hold: int = 1
    """Steps of the environment for which a planned control lasts."""
    offset: float = 0.0
    """Added to returns before taking ratios: the paper's Pendulum ratios are (return + 600) / (expert + 600)."""

    def make_env(self, **kwargs: Any) -> gymnasium.Env[Any, Any]:
        """Make the plain environment, without a time limit of its own: whoever runs an episode cuts it at T."""
        return gymnasium.make(self.env_id, max_episode_steps=-1, **(dict(self.env_kwargs) | kwargs))

    def make_scored_env(self) -> gymnasium.Env[Any, Any]:
        """Make the environment in which agents are scored: the plain one, perhaps without what none looks at."""
        return self.make_env()

    def demonstrations(
        self, noise: float = 0.0, *, episodes: int | None = None, force: bool = False, everything: bool = False
    ) -> Demonstrations:
        """Load the bundled demonstrations, as the planner's simulator would show them."""
        return load_demos(self.name, noise, episodes=episodes, force=force, everything=everything)

    def demonstrations_path(self, noise: float = 0.0) -> Path:
        """Return the file they come from."""
        return bundled_path(self.name, noise)

    def ratio(self, total: float, expert: float) -> float:
        """Return / expert as the paper has it, clipped at zero."""
        return max(0.0, (total + self.offset) / (expert + self.offset))

    def paper_ratio(self, method: str, noise: float) -> float | None:
        """The paper's ratio for a method at a noise level, from its raw returns; None where it has no number."""
        level = f"{noise:g}"
        total, expert = self.paper.get(method, {}).get(level), self.paper.get("expert", {}).get(level)
        return None if total is None or expert is None else self.ratio(total, expert)


def paper_returns(**methods: tuple[float, float, float]) -> dict[str, dict[str, float]]:
    """Lay out the paper's returns at Σ = 0, 0.2 and 0.5: `paper_returns(expert=(…, …, …), rhirl=…)`."""
    return {method: dict(zip(("0", "0.2", "0.5"), returns, strict=True)) for method, returns in methods.items()}
