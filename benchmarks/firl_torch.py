"""f-IRL (Ni et al. 2020, Jensen–Shannon) on Hopper in torch: what `baselines_speed.py` holds ours against.

No package of f-IRL is maintained, so this is its published loop around stable-baselines3's SAC, whose `learn`
collects, draws and updates. Around it stand a discriminator and a reward network:

    SAC learns for a while, every batch it draws paid anew by the reward as it is          `pay`
    the policy's latest episodes, laid out over the task's length, are its state marginal  `watch`
    the discriminator learns to tell their states from demonstrated ones                   `tell_apart`
    one step of the reward down 1/T · cov_τ(Σ h, Σ r), h = −log(1 + eˡ)                    `improve`

Settings carry the names of `FIRLConfig` and `SACConfig`, and mean the same. Where there was a choice, the faster
way was taken: what can be evaluated together goes through a network in one piece, episodes are normalised once a
lesson, and they are those SAC learns from, although the authors' code makes others for the marginal.
"""

from __future__ import annotations

from collections import deque
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

# Imported by name: the type checker's environment has neither.
torch, sb3 = import_module("torch"), import_module("stable_baselines3")
vectors = import_module("stable_baselines3.common.vec_env")
softplus = torch.nn.functional.softplus

DEMOS = Path(__file__).parents[1] / "src/rhirl/demos/data/hopper-noise0.npz"
FLOOR, LIMIT, CONFIDENCE = 1e-2, 5.0, 10.0
"""Bounds of our normaliser and of the discriminator's logit."""


def network(n: int, hidden: tuple[int, ...]) -> Any:
    """Make a ReLU network (..., n) → (..., 1), without an output bias as ours."""
    layers = [layer for a, b in pairwise((n, *hidden)) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(hidden[-1], 1, bias=False))


class FIRL:
    """f-IRL with these settings, its policy and critics of this width, on the first demonstrations of Hopper."""

    def __init__(self, settings: dict[str, Any], width: int, episodes: int, kept: int) -> None:
        self.settings, sac = settings, settings["sac"]
        demos = np.load(DEMOS)["observations"][:episodes].astype(np.float32)
        self.T, n = demos.shape[1] - 1, demos.shape[2]
        states = demos.reshape(-1, n)
        self.mean, self.deviation = map(torch.tensor, (states.mean(0), np.maximum(states.std(0), FLOOR)))
        self.experts = self.normalise(torch.tensor(demos[:, 1:]))
        self.reward, self.discriminator = (network(n, settings["hidden"]) for _ in range(2))
        rates = {"lr": settings["reward_lr"], "weight_decay": settings["reward_decay"]}
        self.reward_adam = torch.optim.Adam(self.reward.parameters(), **rates)
        rates = {"lr": settings["lr"], "weight_decay": settings["weight_decay"]}
        self.discriminator_adam = torch.optim.Adam(self.discriminator.parameters(), **rates)
        self.running = np.zeros((sac["envs"], self.T, n), np.float32)
        self.ages = np.zeros(sac["envs"], np.int64)
        self.finished: deque[np.ndarray] = deque(maxlen=kept)
        self.sac = self.start_sac(sac, width)

    def start_sac(self, sac: dict[str, Any], width: int) -> Any:
        """Have stable-baselines3's SAC draw batches that the reward pays."""
        # Ours takes Gymnasium's checker off too.
        make = [lambda: gymnasium.make("Hopper-v5", disable_env_checker=True)] * sac["envs"]
        model = sb3.SAC(
            "MlpPolicy",
            vectors.DummyVecEnv(make),
            learning_rate=sac["learning_rate"],
            learning_starts=sac["random_steps"],
            batch_size=sac["batch"],
            train_freq=sac["round_steps"],
            gradient_steps=round(sac["update_ratio"] * sac["envs"] * sac["round_steps"]),
            ent_coef=sac["temperature"] or "auto",
            policy_kwargs={"net_arch": [width, width]},
            device="cpu",
            seed=0,
        )
        buffer = model.replay_buffer
        draw = buffer.sample
        buffer.sample = lambda *how, **more: self.pay(draw(*how, **more), model.gamma)
        return model

    def normalise(self, x: Any) -> Any:
        """See observations as ours does."""
        return ((x.float() - self.mean) / self.deviation).clamp(-LIMIT, LIMIT)

    def pay(self, batch: Any, gamma: float) -> Any:
        """Pay r(x), and where `absorbing` the state in which an episode terminated for ever after."""
        with torch.no_grad():
            if self.settings["absorbing"]:
                both = self.normalise(torch.cat([batch.observations, batch.next_observations]))
                now, then = self.reward(both).chunk(2)
                return batch._replace(rewards=now + batch.dones * then * gamma / (1 - gamma))
            return batch._replace(rewards=self.reward(self.normalise(batch.observations)))

    def watch(self, now: dict[str, Any], _: dict[str, Any]) -> bool:
        """Follow the episodes, as SAC's callback; after an early end the last state is repeated."""
        x = now["new_obs"].astype(np.float32)
        over = np.flatnonzero(now["dones"])
        for i in over:
            x[i] = now["infos"][i]["terminal_observation"]
        self.running[np.arange(len(x)), self.ages] = x
        self.ages += 1
        for i in over:
            episode = self.running[i].copy()
            episode[self.ages[i] :] = x[i]
            self.finished.append(episode)
            self.ages[i] = 0
        return True

    def work(self) -> int:
        """Let SAC learn up to the next lesson and give it; return the environment steps this took."""
        sac = self.settings["sac"]
        steps = self.settings["every"] * sac["envs"] * sac["round_steps"]
        self.sac.learn(steps, callback=self.watch, log_interval=None, reset_num_timesteps=False)
        if len(self.finished) >= 2:
            agents = self.normalise(torch.tensor(np.stack(self.finished)))
            self.tell_apart(agents)
            self.improve(agents)
        return steps

    def tell_apart(self, agents: Any) -> None:
        """Train the discriminator on states of demonstrations and of the policy's episodes (k, T, n)."""
        batch, penalty = self.settings["batch"], self.settings["gradient_penalty"]
        experts, agents = self.experts.flatten(0, 1), agents.flatten(0, 1)
        for _ in range(self.settings["updates"]):
            expert, agent = (states[torch.randint(len(states), (batch,))] for states in (experts, agents))
            l_expert, l_agent = self.discriminator(torch.cat([expert, agent])).chunk(2)
            loss = softplus(-l_expert).mean() + softplus(l_agent).mean()
            if penalty:
                mix = torch.rand(batch, 1)
                between = (mix * expert + (1 - mix) * agent).requires_grad_()
                (slopes,) = torch.autograd.grad(self.discriminator(between).sum(), between, create_graph=True)
                norms = ((slopes**2).sum(-1) + 1e-12).sqrt()
                loss = loss + penalty * ((norms - 1) ** 2).mean()
            self.discriminator_adam.zero_grad()
            loss.backward()
            self.discriminator_adam.step()

    def improve(self, agents: Any) -> None:
        """Make one step of the reward on the policy's episodes (k, T, n) and as many demonstrations."""
        chosen = self.experts[torch.randint(len(self.experts), (len(agents),))]
        trajectories = torch.cat([agents, chosen])
        with torch.no_grad():
            logits = self.discriminator(trajectories).clamp(-CONFIDENCE, CONFIDENCE)
            H = -softplus(logits).sum((1, 2))
        R = self.reward(trajectories).sum((1, 2))
        loss = ((H * R).mean() - H.mean() * R.mean()) / self.T
        self.reward_adam.zero_grad()
        loss.backward()
        self.reward_adam.step()
