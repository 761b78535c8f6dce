"""The benchmark tasks. A new one takes one file and one line here."""

from rhirl.tasks.car_racing import CAR_RACING
from rhirl.tasks.lunar_lander import LUNAR_LANDER
from rhirl.tasks.mujoco import ANT, ANT_27, HOPPER, WALKER2D
from rhirl.tasks.pendulum import PENDULUM
from rhirl.tasks.task import Task
from rhirl.tasks.windy_pendulum import WINDY_PENDULUM

TASKS = {
    task.name: task for task in (PENDULUM, LUNAR_LANDER, HOPPER, WALKER2D, ANT, ANT_27, CAR_RACING, WINDY_PENDULUM)
}


def get_task(name: str) -> Task:
    """Find a task by name."""
    if name not in TASKS:
        raise ValueError(f"no task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]


__all__ = ["TASKS", "Task", "get_task"]
