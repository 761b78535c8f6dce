"""A trained policy on its own: what a demonstrator, an evaluation or a robot needs, in one small file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from rhirl.rl import files
from rhirl.rl.networks import MLP, Actor, act, to_numpy


@dataclass(frozen=True)
class Policy:
    """A tanh-Gaussian actor in NumPy, with notes about where it comes from."""

    actor: Actor
    metadata: dict[str, str] = field(default_factory=dict)

    @cached_property
    def observation_dim(self) -> int:
        """How many entries of an observation the actor reads: the first ones."""
        return self.actor.body.weights[0].shape[0]

    @cached_property
    def control_dim(self) -> int:
        """Number of controls m."""
        return self.actor.body.weights[-1].shape[1] // 2

    def act(self, x: np.ndarray, deterministic: bool = True, rng: np.random.Generator | None = None) -> np.ndarray:
        """Controls in [-1, 1] for one observation (n,) or a batch (B, n).

        Observations may be longer than what the actor reads; a policy trained on the leading entries alone (Ant
        without its contact forces) then serves the full environment.
        """
        x = np.asarray(x, np.float32)[..., : self.observation_dim]
        if x.shape[-1] < self.observation_dim:
            raise ValueError(f"this policy reads {self.observation_dim} observations, got {x.shape[-1]}")
        batch = np.atleast_2d(x)
        noise = None
        if not deterministic:
            if rng is None:
                raise ValueError("a stochastic control needs a random generator: pass rng")
            noise = rng.standard_normal((len(batch), self.control_dim), np.float32)
        return act(self.actor, batch, noise).reshape(*x.shape[:-1], self.control_dim)

    def save(self, path: Path) -> None:
        """Write `policy.safetensors`."""
        files.save(path, self.actor, self.metadata)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read a policy back, bit for bit."""
        arrays, metadata = files.load(path)
        try:
            layers = sum(key.startswith("body.weights.") for key in arrays)
            norms = sum(key.startswith("body.gains.") for key in arrays)
            parts = (("weights", layers), ("biases", layers), ("gains", norms), ("offsets", norms))
            body = MLP(*(tuple(arrays[f"body.{part}.{i}"] for i in range(count)) for part, count in parts))
            body.weights[0]
        except (KeyError, IndexError):
            raise ValueError(f"{path} holds no policy: it lacks the layers of an actor") from None
        return cls(to_numpy(Actor(body)), metadata)
