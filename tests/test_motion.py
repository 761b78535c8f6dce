"""Films of runs."""

from __future__ import annotations

from typing import Any

import gymnasium
import mujoco
import pytest

from rhirl.report.motion import follow


@pytest.mark.parametrize("env_id", ["Hopper-v5", "Walker2d-v5", "Ant-v5"])
def test_the_camera_goes_with_the_robot(env_id: str) -> None:
    """Gymnasium films with a free camera, which a hopper has left after a second; the model brings a better one."""
    env = gymnasium.make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    follow(env)
    inner: Any = env.unwrapped
    assert inner.mujoco_renderer.camera_id == 0
    before = inner.data.cam_xpos[0].copy()
    inner.data.qpos[0] += 5
    mujoco.mj_forward(inner.model, inner.data)
    assert inner.data.cam_xpos[0, 0] - before[0] == pytest.approx(5, abs=1e-6)
    env.close()


def test_other_environments_are_filmed_as_they_are() -> None:
    follow(gymnasium.make("Pendulum-v1"))
