"""A run in motion: the expert and what was learned, side by side from the same start, as one animated picture."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import gymnasium
import numpy as np
from PIL import Image, ImageDraw

from rhirl.demos import Agent, run_episode
from rhirl.experiments.agents import expert_agent
from rhirl.experiments.evaluate import load_agent
from rhirl.experiments.run import RunDirectory
from rhirl.experiments.seeds import VALIDATION, episode_seeds
from rhirl.report.figures import INK
from rhirl.tasks import Task

STEPS, FRAMES, SIZE = 300, 100, 240
"""Steps of an episode that are shown, pictures they are thinned to, and the height of one in pixels."""


class Filming(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps a small picture of the environment before every step and after the last one."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.frames: list[Image.Image] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new film."""
        result = super().reset(seed=seed, options=options)
        self.frames = [self._picture()]
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and take a picture."""
        result = super().step(action)
        self.frames.append(self._picture())
        return result

    def _picture(self) -> Image.Image:
        pixels: Any = self.env.render()
        frame = Image.fromarray(np.asarray(pixels, np.uint8))
        return frame.resize((SIZE * frame.width // frame.height, SIZE), Image.Resampling.BILINEAR)


def film(run: RunDirectory) -> bytes:
    """Film a run as animated WebP; raises where the environment cannot be drawn on this machine."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if sys.platform == "linux" and "DISPLAY" not in os.environ:
        os.environ.setdefault("MUJOCO_GL", "egl")  # draws without a screen
    config = run.config()
    task, learned = load_agent(run)
    seed = episode_seeds(VALIDATION, config.seed, 1)[0]
    shots = [_shoot(task, agent, config.noise, seed) for agent in (expert_agent(task, config.noise), learned)]
    return _side_by_side(shots, ("expert", "learned"))


def _shoot(task: Task, agent: Agent, noise: float, seed: int) -> list[Image.Image]:
    env = Filming(task.make_env(render_mode="rgb_array"))
    follow(env)
    try:
        run_episode(env, agent, horizon=min(task.T, STEPS), noise=noise, seed=seed)
    finally:
        env.close()
    return env.frames


def follow(env: gymnasium.Env[Any, Any]) -> None:
    """Look through the model's own camera, which goes with a MuJoCo robot; Gymnasium's stays where it began."""
    inner: Any = env.unwrapped
    if hasattr(inner, "mujoco_renderer") and inner.model.ncam > 0:
        inner.mujoco_renderer.camera_id = 0


def _side_by_side(shots: list[list[Image.Image]], names: tuple[str, ...]) -> bytes:
    """Put films beside each other; one that ends early stands still."""
    length = max(map(len, shots))
    frames = []
    for i in np.linspace(0, length - 1, min(length, FRAMES)).astype(int):
        pictures = [shot[min(i, len(shot) - 1)] for shot in shots]
        frame = Image.new("RGB", (sum(p.width for p in pictures), SIZE + 20), "white")
        draw = ImageDraw.Draw(frame)
        left = 0
        for picture, name in zip(pictures, names, strict=True):
            frame.paste(picture, (left, 20))
            draw.text((left + picture.width / 2, 10), name, fill=INK, anchor="mm", font_size=13)
            left += picture.width
        frames.append(frame)
    buffer = io.BytesIO()
    frames[0].save(buffer, "WEBP", save_all=True, append_images=frames[1:], duration=60, loop=0, quality=60)
    return buffer.getvalue()
