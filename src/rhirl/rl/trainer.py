"""SAC with its environments and its replay buffer: a thing that can be trained, watched, stopped and resumed.

One round: the environments are stepped under the actor as it is while the updates run on the transitions there
are; then the new transitions join the replay buffer. Stepping and learning thus overlap on any machine, and the
result does not depend on which of them was faster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rhirl.rl import files
from rhirl.rl.networks import to_numpy
from rhirl.rl.policy import Policy
from rhirl.rl.replay import Replay, insert, pack
from rhirl.rl.sac import Learner, Metrics, Reward, SACConfig, init, updates
from rhirl.rl.vector import Environments, MakeEnv
from rhirl.rl.workers import Workers


class Round(NamedTuple):
    """What one round of training brought."""

    steps: int
    """Environment steps so far."""
    returns: np.ndarray
    """Returns of the episodes that ended in this round."""
    lengths: np.ndarray
    """Their lengths."""
    metrics: Metrics
    """Losses and values, means over the round's updates; empty before learning starts. Still on the device."""


class SAC:
    """A learner in its environments.

    `reward(parameters, x, x_next)` replaces the environment's reward, recomputed for every batch; assign
    `reward_parameters` anew whenever the reward has learned something.
    """

    def __init__(
        self,
        config: SACConfig,
        make: MakeEnv,
        horizon: int,
        *,
        processes: int = 0,
        reward: Reward | None = None,
        reward_parameters: Any = None,
    ) -> None:
        """Build everything; `processes` > 0 steps the environments in that many processes of their own."""
        self.config, self.reward, self.reward_parameters = config, reward, reward_parameters
        self.envs: Environments | Workers
        if processes:
            self.envs = Workers(make, config.envs, horizon, config.seed, processes=processes)
        else:
            self.envs = Environments(make, config.envs, horizon, config.seed)
        self.learner: Learner = init(config, self.envs.n, self.envs.m)
        self.replay = Replay.create(config.capacity, self.envs.n, self.envs.m)
        self.steps = 0

    def round(self) -> Round:
        """Collect `envs * round_steps` transitions and run the updates that go with them."""
        exploring = self.steps < self.config.random_steps
        self.envs.start(None if exploring else to_numpy(self.learner.actor), self.config.round_steps)
        metrics: Metrics = {} if exploring else self.update(self.config.updates_per_round)
        return self.collect(metrics)

    def update(self, count: int) -> Metrics:
        """Run `count` updates on what the replay buffer holds."""
        # What is compiled does not depend on the seed: several trainings in one process share it.
        config = replace(self.config, seed=0)
        self.learner, metrics = updates(
            config, self.learner, self.replay, count, self.reward, self.reward_parameters
        )
        return metrics

    def collect(self, metrics: Metrics) -> Round:
        """Take in the transitions the environments were asked for."""
        rollout = self.envs.finish()
        self.replay = insert(self.replay, jnp.asarray(pack(rollout.transitions)))
        self.steps += len(rollout.transitions.r)
        return Round(self.steps, rollout.returns, rollout.lengths, metrics)

    def train(self, steps: int) -> Iterator[Round]:
        """Train until `steps` environment steps have been made in all, one round at a time."""
        while self.steps < steps:
            yield self.round()

    def policy(self, **metadata: str) -> Policy:
        """Take the actor out."""
        return Policy(to_numpy(self.learner.actor), metadata)

    def save(self, path: Path) -> None:
        """Write everything that training continues from: learner, replay buffer and where each episode is."""
        filled = min(int(self.replay.inserted), self.replay.capacity)
        tree = {
            "learner": self.learner,
            "rows": self.replay.rows[:filled],
            "inserted": self.replay.inserted,
            "envs": self.envs.state(),
            "steps": np.array(self.steps),
        }
        files.save(path, tree, {"config": json.dumps(asdict(self.config))})

    def restore(self, path: Path) -> None:
        """Continue exactly where `save` was called, for the same configuration and environments."""
        arrays, metadata = files.load(path)
        ours = json.loads(json.dumps(asdict(self.config)))
        theirs = json.loads(metadata["config"])
        changed = sorted(key for key in ours if ours[key] != theirs.get(key))
        if changed:
            wanted = ", ".join(f"{key}={theirs.get(key)}" for key in changed)
            raise ValueError(f"{path} was written under another configuration; to resume it, set {wanted}")
        parts = {key.removeprefix("learner."): a for key, a in arrays.items() if key.startswith("learner.")}
        self.learner = jax.tree.map(jnp.asarray, files.fill(self.learner, parts, path))
        rows = self.replay.rows.at[: len(arrays["rows"])].set(arrays["rows"])
        inserted = jnp.asarray(arrays["inserted"])
        self.replay = eqx.tree_at(lambda replay: (replay.rows, replay.inserted), self.replay, (rows, inserted))
        self.envs.restore({key.removeprefix("envs."): a for key, a in arrays.items() if key.startswith("envs.")})
        self.steps = int(arrays["steps"])

    def close(self) -> None:
        """Release the environments."""
        self.envs.close()
