"""The hyper-parameters of RHIRL, in the paper's symbols. Field docstrings are the command line's help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rhirl.planning import Planner


@dataclass(frozen=True)
class Config:
    """How RHIRL learns. Tasks bring presets: `paper` is the published algorithm, `default` what we recommend."""

    planner: Planner = field(default_factory=Planner)
    """The planner inside the learner."""
    deploy: Planner | None = None
    """The planner that acts with the learned cost; by default the one it was learned with."""
    amid_noise: Planner | None = None
    """The planner that acts where danger is minded; by default the one that learned, too."""
    exact: bool = False
    """Whether that planner rolls out the exact model of the system, where it learned with a cheaper one."""
    as_acting: bool = False
    """Whether `rhirl train` learns amid noise as it will act there: by that planner, on that model."""
    iterations: int = 2_000
    """Control steps to learn for; each makes one update of the cost."""
    parallel: int = 8
    """Episodes B learned from side by side: their gradients are averaged. The paper has 1."""
    starts: float = 0.0
    """Share of the learning episodes that begin at a demonstrated state and its time; the paper has 0."""
    span: int | None = None
    """Steps after which a learning episode is over; by default the task's T, as in the paper."""
    absorbing: bool = False
    """Whether a demonstration that ends early stays where it ended until T, as a lander stays on its pad."""
    quorum: float = 0.0
    """Share of the demonstrations that must last for a step to count: the few that outlast most are accidents."""
    hidden: tuple[int, ...] = (32, 32)
    """Hidden layers of the cost network."""
    lr: float = 3e-4
    """Learning rate of Adam."""
    decay: bool = False
    """Let the learning rate fall to zero over all iterations, along half a cosine; the paper keeps it."""
    weight_decay: float = 8e-5
    """L2 penalty on θ, added to the gradient before Adam (not decoupled)."""
    penalty: float = 0.0
    """Coefficient of the mean of g² over expert and planner states, which keeps the cost's scale bounded."""
    blur: float = 0.0
    """Noise added to states while learning, in the demonstrations' deviations; finer differences teach nothing."""
    average: float = 0.995
    """Decay of the running average of θ that is kept as the learned cost; 0 keeps the last θ, as the paper does."""
    lessons: int | None = None
    """Sequences an update learns from, drawn by their weights; by default all M, weighted, as in the paper."""
    clone: Literal["small", "large"] = "small"
    """Which network `rhirl train` clones as a proposal from a quiet demonstrator; from a noisy one the large."""
    relearn: int | None = None
    """Control steps after which `rhirl train` clones the proposal anew, from what the planner did as well."""
    rehearsals: int = 0
    """Most rounds in which `rhirl train` improves the proposal by the learned cost, amid the system's noise."""
    beyond: int = 0
    """When acting: steps the proposal must be able to go on for behind a plan, or another one is followed."""
    astray: bool = False
    """Whether such a look also tells who goes where no expert does, by the learned cost; takes a penalty > 0."""
    wary: float = 0.0
    """When acting amid noise: coefficient c of the danger of being lost within `beyond` steps, which is learned."""
    M_s: int = 1
    """Rollouts of each control sequence, for simulators with noise of their own; their costs are averaged."""
    floor: float = 1e-2
    """Smallest deviation used to normalise a coordinate of the observation."""
    limit: float = 5.0
    """Normalised observations are clipped to ± this."""

    @property
    def acting(self) -> Planner:
        """The planner to act with."""
        return self.deploy or self.planner

    @property
    def minding(self) -> Planner:
        """The planner to act with where danger is minded."""
        return self.amid_noise or self.planner

    def learns_as_it_acts(self, noise: float) -> bool:
        """Whether the planner that minds danger also learns, on a system with control noise σ."""
        return self.as_acting and noise > 0

    @property
    def guided(self) -> bool:
        """Whether any of the planners asks for a proposal."""
        return max(planner.guided for planner in (self.planner, self.acting, self.minding)) > 0

    @property
    def minds_danger(self) -> bool:
        """Whether danger is learned and minded amid noise."""
        return self.wary > 0 and self.beyond > 0

    def __post_init__(self) -> None:
        for name in ("iterations", "parallel", "M_s"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.starts <= 1:
            raise ValueError(f"starts is a share between 0 and 1, not {self.starts}")
        if not 0 <= self.quorum <= 1:
            raise ValueError(f"quorum is a share between 0 and 1, not {self.quorum}")
        if self.span is not None and self.span < 1:
            raise ValueError(f"span must be at least 1, not {self.span}")
        if self.beyond < 0:
            raise ValueError(f"beyond is a number of steps, not {self.beyond}")
        if self.astray and not self.penalty > 0:
            raise ValueError("astray=True takes a penalty > 0: without one a cost has no zero that means anything")
        if self.rehearsals < 0:
            raise ValueError(f"rehearsals is a number of rounds, not {self.rehearsals}")
        if self.rehearsals and not self.beyond:
            raise ValueError("rehearsals take beyond > 0: within so many steps a loss counts")
        if self.wary < 0:
            raise ValueError(f"wary is a coefficient of at least 0, not {self.wary}")
        if self.lessons is not None and self.lessons < 1:
            raise ValueError(f"lessons must be at least 1, not {self.lessons}")
        if not self.lr > 0:
            raise ValueError(f"lr must be positive, not {self.lr}")
