"""Pendulum's own pictures: the learned cost over angle and velocity, and the controller beside the expert."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rhirl.costs import Cost
from rhirl.report.figures import EXPERT, INK, LEARNED, MUTED, STYLE


def cost_map(cost: Cost, expert: Sequence[NDArray[Any]], learned: Sequence[NDArray[Any]]) -> Figure:
    """Draw g over (θ, ω), with some of the expert's and the learned controller's trajectories on it."""
    theta, omega = np.meshgrid(np.linspace(-np.pi, np.pi, 181), np.linspace(-8, 8, 161))
    g = np.asarray(cost(jnp.stack([jnp.cos(theta), jnp.sin(theta), jnp.asarray(omega)], axis=-1)))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 4.4), layout="constrained")
        axes = figure.subplots()
        picture = axes.pcolormesh(theta, omega, g, cmap="cividis", shading="gouraud", rasterized=True)
        figure.colorbar(picture, ax=axes, label="learned cost g(x)")
        for color, name, episodes in ((EXPERT, "expert", expert), ("white", "learned controller", learned)):
            for i, x in enumerate(episodes):
                angle, velocity = _cut_at_wrap(np.arctan2(x[:, 1], x[:, 0]), x[:, 2])
                axes.plot(angle, velocity, color=color, linewidth=1.1, alpha=0.9, label=name if i == 0 else None)
        axes.set(xlabel="angle θ (0 is upright)", ylabel="velocity ω (rad/s)", xlim=(-np.pi, np.pi), ylim=(-8, 8))
        axes.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["−π", "−π/2", "0", "π/2", "π"])
        legend = axes.legend(loc="lower left", facecolor=INK, edgecolor=MUTED, framealpha=0.6)
        for text in legend.get_texts():
            text.set_color("white")
    return figure


def animation(expert: NDArray[Any], learned: NDArray[Any], *, size: int = 220, scale: int = 2) -> bytes:
    """Draw two episodes side by side as a GIF, at the pendulum's own pace of 20 frames a second."""
    frames = []
    for x_expert, x_learned in zip(expert, learned, strict=False):
        frame = Image.new("RGB", (2 * size * scale, size * scale), "white")
        draw = ImageDraw.Draw(frame)
        for i, (x, name, color) in enumerate(((x_expert, "expert", EXPERT), (x_learned, "learned", LEARNED))):
            _rod(draw, x, np.array([(i + 0.5) * size, 0.52 * size]) * scale, 0.36 * size * scale, color)
            draw.text(((i + 0.5) * size * scale, 14 * scale), name, fill=INK, anchor="mm", font_size=14 * scale)
        frames.append(frame.resize((2 * size, size), Image.Resampling.LANCZOS))
    buffer = io.BytesIO()
    frames[0].save(buffer, format="GIF", save_all=True, append_images=frames[1:], duration=50, loop=0)
    return buffer.getvalue()


def _rod(draw: ImageDraw.ImageDraw, x: NDArray[Any], pivot: NDArray[Any], length: float, color: str) -> None:
    tip = pivot + length * np.array([-x[1], -x[0]])
    draw.line([*pivot, *tip], fill=color, width=int(0.2 * length))
    for end, radius in ((pivot, 0.1), (tip, 0.1)):
        box = [*(end - radius * length), *(end + radius * length)]
        draw.ellipse(box, fill=color)
    draw.ellipse([*(pivot - 0.04 * length), *(pivot + 0.04 * length)], fill="white")


def _cut_at_wrap(angle: NDArray[Any], velocity: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Break a curve where the angle jumps from π to −π, so that no line crosses the picture."""
    jumps = np.flatnonzero(np.abs(np.diff(angle)) > np.pi) + 1
    return np.insert(angle, jumps, np.nan), np.insert(velocity, jumps, np.nan)
