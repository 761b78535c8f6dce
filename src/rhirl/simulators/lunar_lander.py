"""Gymnasium's LunarLander-v3 (continuous, without wind), compiled: the same physics to the last bit.

The state is a NamedTuple of plain arrays (bodies, hinge and contact impulses, contact list, terrain). Rollouts
run without the GIL on the threads this process may use; the result does not depend on their number. Box2D is needed
only to talk to a running environment (`snapshot`, `restore`), and only through its public Python interface.

Engine dispersion: Gymnasium draws two uniform numbers in [-1, 1] per step that displace the thrust. Here they are
an input: zero in rollouts unless asked for, drawn from the seed in `step`, or given by the caller.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import ArrayLike, NDArray

from rhirl.simulators.box2d.lead import EDGE_OF_VIEW, lead_worlds
from rhirl.simulators.box2d.scene import BODIES, EDGES, START_BOXES, START_POSES, VIEW_H, VIEW_W
from rhirl.simulators.box2d.settings import LANES
from rhirl.simulators.box2d.simulate import observe, simulate
from rhirl.simulators.box2d.state import BODY, COUNT, EDGE, World, make_worlds
from rhirl.simulators.checks import check_controls
from rhirl.simulators.leading import Led, blank, disturbances
from rhirl.simulators.protocol import Policy, Rollout
from rhirl.simulators.threads import split, usable_cores

LanderState = World

CHUNKS = 11
INITIAL_FORCE = 1000.0
LEGS_SETTLE = 30
"""Steps after which the legs have come to rest against their stops."""
LAYOUT = [(array.shape[1:], array.dtype) for array in make_worlds(1)]


class LunarLanderSimulator:
    """LunarLander-v3 with continuous controls (main engine, side engines) and the 8-D observation of Gymnasium.

    Args:
        gravity: As `gymnasium.make("LunarLander-v3", gravity=…)`.
        dispersion: Whether rollouts draw the engines' dispersion from their seed; otherwise it is zero.
        threads: How many threads roll out; by default the processors this process may use.
    """

    observation_shape = (8,)
    control_dim = 2

    def __init__(self, *, gravity: float = -10.0, dispersion: bool = False, threads: int | None = None) -> None:
        self.gravity = gravity
        self.dispersion = dispersion
        self.threads = usable_cores() if threads is None else threads
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")

    def reset(self, seed: int) -> LanderState:
        """Draw terrain and initial push, with the same numbers as the environment's own `reset(seed=seed)`."""
        return self._start(seeding.np_random(seed)[0])

    def replay(self, seed: int, controls: ArrayLike) -> LanderState:
        """Return the exact state of an environment after `reset(seed=seed)` and executing controls (t, 2)."""
        rng = seeding.np_random(seed)[0]
        state = self._start(rng)
        for control in np.reshape(controls, (-1, self.control_dim)):
            state = self.step(state, control, dispersion=rng.uniform(-1.0, 1.0, 2))
        return state

    def observe(self, state: LanderState) -> NDArray[np.float32]:
        """Return (x, y, ẋ, ẏ, angle, angular velocity, left leg down, right leg down), x and y from the pad."""
        return observe(_checked(state)).astype(np.float32)

    def step(
        self, state: LanderState, control: ArrayLike, seed: int = 0, *, dispersion: ArrayLike | None = None
    ) -> LanderState:
        """Advance by 0.02 s with the dispersion (2,) given, or else drawn from the seed."""
        V = check_controls(np.clip(control, -1.0, 1.0)[None, None], self.control_dim)
        if np.isnan(V).any():
            raise ValueError(f"a control must hold numbers in [-1, 1], not {np.asarray(control)}")
        if dispersion is None:
            dispersion = np.random.default_rng(seed).uniform(-1.0, 1.0, 2)
        return self._advance(state, V, dispersion)

    def mean_step(self, state: LanderState, control: ArrayLike) -> LanderState:
        """Advance by 0.02 s without dispersion."""
        return self.step(state, control, dispersion=np.zeros(2))

    def terminated(self, state: LanderState) -> bool:
        """Tell whether the lander crashed, left the view sideways, or has come to rest."""
        return self.lost(state) or not bool(state.awake[0])

    def lost(self, state: LanderState) -> bool:
        """Tell whether the lander crashed or left the view sideways."""
        return bool(state.touched[0] or abs(observe(_checked(state))[0]) >= EDGE_OF_VIEW)

    def rollout(
        self, state: LanderState, controls: NDArray[Any], seed: int = 0, *, dispersion: ArrayLike | None = None
    ) -> Rollout:
        """Roll out V (M, K, 2); like the environment, a rollout that crashed or came to rest goes on.

        A rollout has `ended` where it crashed or left the view; to come to rest is no end to be avoided. A control
        that is not a number leaves the engines off and makes the rollout invalid. `dispersion` may be given in any
        shape that broadcasts to V's.
        """
        V = check_controls(np.clip(controls, -1.0, 1.0), self.control_dim)
        M, K, _ = V.shape
        missing = np.isnan(V)
        V = np.where(missing, np.float32(0.0), V)
        if dispersion is None:
            dispersion = np.random.default_rng(seed).uniform(-1.0, 1.0, V.shape) if self.dispersion else 0.0
        noise = _spread(dispersion, V)
        start = _checked(state)
        observations, crashed = np.empty((M, K + 1, 8), np.float32), np.empty(M, np.bool_)

        def roll(lanes: slice) -> None:
            worlds = _world(np.repeat(array, lanes.stop - lanes.start, axis=0) for array in start)
            self._simulate(worlds, V[lanes], noise[lanes], observations[lanes])
            crashed[lanes] = worlds.touched[:, 0]

        groups = split(M, self.threads, LANES)
        if self.threads == 1 or len(groups) < 2:
            for lanes in groups:
                roll(lanes)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(roll, groups))
        finite = np.isfinite(observations).all(axis=(1, 2))
        gone = np.abs(observations[:, 1:, 0]).max(axis=1, initial=0.0) >= EDGE_OF_VIEW
        return Rollout(observations, np.asarray(finite & ~missing.any(axis=(1, 2))), np.asarray(crashed | gone))

    def lead(self, starts: Sequence[LanderState], policy: Policy, noise: ArrayLike, steps: int, seed: int) -> Led:
        """Lead landers by a policy under control noise; each has its own dispersion, drawn anew at every step."""
        worlds = _world(np.concatenate(arrays) for arrays in zip(*map(_checked, starts), strict=True))
        led, N = blank(self, len(starts), steps), len(starts)
        led.observations[:, 0] = [self.observe(state) for state in starts]
        epsilon = disturbances(seed, steps, N, self.control_dim, noise)
        dispersion = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, (steps, N, 2))
        return lead_worlds(worlds, led, policy, epsilon, dispersion, np.float32(self.gravity), self.threads)

    def snapshot(self, env: gymnasium.Env[Any, Any]) -> LanderState:
        """Read the state of a running environment through Box2D's public interface, without touching it.

        Everything is exact but the three sleep timers, which Box2D keeps to itself and which are read as zero: the
        state of a lander at rest may fall asleep up to 0.5 s later than the environment does.
        """
        from rhirl.simulators.box2d.bridge import read_world

        return read_world(env, self.gravity)

    def restore(self, env: gymnasium.Env[Any, Any], state: LanderState) -> None:
        """Put a running environment into a state, as far as Box2D's public interface allows.

        Terrain, poses, velocities and leg contacts are set; impulses cannot be and are approached by trial steps.
        For an environment in exactly this state, replay its seed and controls instead.
        """
        from rhirl.simulators.box2d.bridge import write_world

        write_world(env, _checked(state), self.gravity)

    def state_from_observation(self, observation: NDArray[Any], near: LanderState | None = None) -> LanderState:
        """Return a state with the pose and velocity of an observation (8,).

        The observation tells neither how the legs hang nor the terrain. Both are as in `near`, and so is what
        touches the ground. Without it the legs hang as they do in flight, and the terrain, which is random but for
        the flat pad, is one of a thousand, chosen by the observation itself: the same one always gives the same
        state.
        """
        from rhirl.simulators.box2d.inverse import invert_observation

        x = np.asarray(observation, np.float64)
        if x.shape != self.observation_shape or not np.isfinite(x).all():
            raise ValueError("an observation of the lunar lander is 8 finite numbers")
        if near is None:
            terrain = zlib.crc32(x.astype(np.float32).tobytes()) % 1000
            near = self._advance(self.reset(terrain), np.zeros((1, LEGS_SETTLE, 2), np.float32), np.zeros(2))
        return invert_observation(near, x)

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """Make the environment that is simulated."""
        return gymnasium.make("LunarLander-v3", continuous=True, gravity=self.gravity)

    def action(self, controls: NDArray[Any]) -> NDArray[np.float32]:
        """Return controls as actions of the environment, whose units they share."""
        return np.clip(controls, -1.0, 1.0).astype(np.float32)

    def bare_rollout(self, state: LanderState, controls: NDArray[Any]) -> Callable[[], object]:
        """Prepare as many world steps of Box2D itself, on one thread as its bindings hold the GIL."""
        from rhirl.simulators.box2d.bridge import bare_steps

        env = self.make_env()
        env.reset(seed=0)
        return bare_steps(env, _checked(state), *np.shape(controls)[:2])

    def _start(self, rng: np.random.Generator) -> LanderState:
        height = rng.uniform(0, VIEW_H / 2, CHUNKS + 1)
        push = rng.uniform(-INITIAL_FORCE, INITIAL_FORCE, 2)
        state = _world(array[0] for array in make_worlds(1))
        state.terrain[:] = _terrain(height)
        state.bodies[:, :3] = START_POSES
        state.boxes[:] = START_BOXES
        state.awake[:] = True
        state.contacts[:, EDGE] = -1
        rng.uniform(-1.0, 1.0, 2)  # `reset` ends with a step, whose dispersion moves nothing: the engines are off.
        return self._advance(state, np.zeros((1, 1, 2), np.float32), np.zeros(2), push)

    def _advance(
        self, state: LanderState, V: NDArray[np.float32], dispersion: ArrayLike, force: ArrayLike = (0.0, 0.0)
    ) -> LanderState:
        """Execute V (1, K, 2) and return the final state."""
        worlds = _checked(state)
        self._simulate(
            worlds,
            V,
            _spread(dispersion, V),
            np.empty((1, V.shape[1] + 1, 8), np.float32),
            force,
        )
        return _world(array[0] for array in worlds)

    def _simulate(
        self,
        worlds: LanderState,
        V: NDArray[np.float32],
        dispersion: NDArray[np.float64],
        observations: NDArray[np.float32],
        force: ArrayLike = (0.0, 0.0),
    ) -> None:
        simulate(worlds, V, dispersion, np.float32(self.gravity), np.asarray(force, np.float32), observations)


def _terrain(height: NDArray[np.float64]) -> NDArray[np.float32]:
    """Smooth twelve random heights into the ground's edges (11, 4), flat around the pad in the middle."""
    height[CHUNKS // 2 - 2 : CHUNKS // 2 + 3] = VIEW_H / 4
    smooth = [0.33 * (height[i - 1] + height[i] + height[i + 1]) for i in range(CHUNKS)]
    x = [VIEW_W / (CHUNKS - 1) * i for i in range(CHUNKS)]
    edges = [(x[i], smooth[i], x[i + 1], smooth[i + 1]) for i in range(CHUNKS - 1)]
    return np.array([(0.0, 0.0, VIEW_W, 0.0), *edges], np.float32)


def _checked(state: Any) -> LanderState:
    """Copy a state into arrays with a leading axis of one; refuse what compiled code could not run on safely."""
    if not isinstance(state, World) or [np.shape(array) for array in state] != [shape for shape, _ in LAYOUT]:
        arrays = ", ".join(f"{name} {shape}" for name, (shape, _) in zip(World._fields, LAYOUT, strict=True))
        raise ValueError(f"a lunar lander state is a LanderState with {arrays}: is this one of another task?")
    worlds = _world(
        np.array(array, dtype, order="C", ndmin=len(shape) + 1)
        for array, (shape, dtype) in zip(state, LAYOUT, strict=True)
    )
    edge, body, count = (worlds.contacts[0, :, column] for column in (EDGE, BODY, COUNT))
    used = int((edge >= 0).sum())
    pairs = set(zip(edge[:used].tolist(), body[:used].tolist(), strict=True))
    in_range = -1 <= edge.min() <= edge.max() < EDGES and 0 <= body.min() <= body.max() < BODIES
    in_order = (edge[used:] == -1).all() and not count[used:].any() and 0 <= count.min() <= count.max() <= 2
    if not in_range or not in_order or len(pairs) < used:
        raise ValueError("the contact list of this lunar lander state is damaged: take a new snapshot")
    return worlds


def _world(arrays: Iterable[NDArray[Any]]) -> LanderState:
    return LanderState(*arrays)


def _spread(dispersion: ArrayLike, V: NDArray[np.float32]) -> NDArray[np.float64]:
    """Give every control of V its dispersion, in memory of its own."""
    if np.broadcast_shapes(np.shape(dispersion), V.shape) != V.shape:
        raise ValueError(f"dispersion of shape {np.shape(dispersion)} cannot be spread over controls {V.shape}")
    return np.array(np.broadcast_to(dispersion, V.shape), np.float64, order="C")
