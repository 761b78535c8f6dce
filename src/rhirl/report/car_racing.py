"""CarRacing's own pictures: the learned cost along a track, and learned driving beside the expert's."""

from __future__ import annotations

import io
from typing import Any

import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rhirl.costs import Cost
from rhirl.report.figures import EXPERT, INK, STYLE
from rhirl.simulators.car.render import View, frames
from rhirl.simulators.car.state import ANGLE, BODIES, BODY, OMEGA, VX, VY, WHEEL, WHEELS, X, Y, body_origin
from rhirl.simulators.car.track import Track
from rhirl.simulators.car_racing import CarRacingSimulator

ASIDE = np.linspace(-16.0, 16.0, 17)
"""Distances from the middle of the road (m); it ends at 6.7."""
SPEED = 40.0
WHEEL_RADIUS = 0.54
BATCH = 1024


def cost_map(
    cost: Cost,
    simulator: CarRacingSimulator,
    track: Track,
    expert: NDArray[np.float64],
    learned: NDArray[np.float64],
) -> Figure:
    """Draw g of a car that follows the road at 40 m/s, at every place of a track and beside it.

    Args:
        cost: The learned cost; it sees frames.
        simulator: Draws the frames the cost was learned on.
        track: The track.
        expert: (t, STATE_DIM) the expert's drive along it.
        learned: (t, STATE_DIM) the learned controller's.
    """
    heading, line = track.line[:, 1], track.line[:, 2:]
    across = np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    places = line[:, None] + ASIDE[None, :, None] * across[:, None]
    cars = np.array(
        [place_car(track.start, place, beta) for row, beta in zip(places, heading, strict=True) for place in row]
    )
    g = np.concatenate(
        [
            np.asarray(cost(jnp.asarray(simulator.draw(track.seed, cars[i : i + BATCH]))))
            for i in range(0, len(cars), BATCH)
        ]
    ).reshape(places.shape[:2])
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 6.0), layout="constrained")
        axes = figure.subplots()
        low, high = np.percentile(g, [2, 98])
        closed = np.concatenate([places, places[:1]]), np.concatenate([g, g[:1]])
        picture = axes.pcolormesh(
            *np.moveaxis(closed[0], -1, 0), closed[1], cmap="cividis", shading="gouraud", vmin=low, vmax=high
        )
        figure.colorbar(picture, ax=axes, label="learned cost g(x)", shrink=0.8)
        for side in (-20 / 3, 20 / 3):
            edge = np.concatenate([line, line[:1]]) + side * np.concatenate([across, across[:1]])
            axes.plot(*edge.T, color=INK, linewidth=0.5)
        for color, name, drive in ((EXPERT, "expert", expert), ("white", "learned controller", learned)):
            axes.plot(*body_origin(drive).T, color=color, linewidth=1.2, label=name)
        axes.set(aspect="equal", xlabel="x (m)", ylabel="y (m)")
        legend = axes.legend(loc="best", facecolor=INK, framealpha=0.6)
        for text in legend.get_texts():
            text.set_color("white")
    return figure


def place_car(
    car: NDArray[np.float64], place: NDArray[np.float64], heading: float, speed: float = SPEED
) -> NDArray[np.float64]:
    """Move a car (STATE_DIM,) as a whole to a place (2,) and heading, rolling straight ahead."""
    x, y = place
    moved = car.copy()
    turn = heading - car[ANGLE]
    c, s = np.cos(turn), np.sin(turn)
    origin = body_origin(car)
    for body in range(BODIES):
        b = BODY * body
        dx, dy = car[b + X] - origin[0], car[b + Y] - origin[1]
        moved[b + X], moved[b + Y] = x + c * dx - s * dy, y + s * dx + c * dy
        moved[b + ANGLE] = car[b + ANGLE] + turn
        moved[b + VX], moved[b + VY] = -speed * np.sin(heading), speed * np.cos(heading)
    for wheel in range(WHEELS):
        moved[WHEEL + 4 * wheel + OMEGA] = speed / WHEEL_RADIUS
    return moved


def animation(
    track: Track, expert: NDArray[np.float64], learned: NDArray[np.float64], *, every: int = 5, scale: int = 2
) -> bytes:
    """Draw two drives (t, STATE_DIM) side by side as a GIF, at about the environment's own pace."""
    shown = [frames(track, drive[::every], View()) for drive in (expert, learned)]
    length = max(map(len, shown))
    side, top = 96 * scale, 18
    pictures = []
    for n in range(length):
        picture = Image.new("RGB", (2 * side + 6, side + top), "white")
        draw = ImageDraw.Draw(picture)
        for i, (name, drive) in enumerate(zip(("expert", "learned"), shown, strict=True)):
            frame = Image.fromarray(drive[min(n, len(drive) - 1)]).resize((side, side), Image.Resampling.NEAREST)
            picture.paste(frame, (i * (side + 6), top))
            ended = " (lap finished)" if n >= len(drive) and len(drive) < length else ""
            draw.text((i * (side + 6) + side / 2, top / 2), name + ended, fill=INK, anchor="mm")
        pictures.append(picture.quantize(32, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE))
    buffer = io.BytesIO()
    options: dict[str, Any] = {"save_all": True, "append_images": pictures[1:], "duration": 20 * every, "loop": 0}
    pictures[0].save(buffer, format="GIF", **options)
    return buffer.getvalue()
