"""Read and write a running LunarLander through the public interface of pybox2d.

All that a step depends on can be read, down to contact impulses and the enlarged boxes of the broad phase, except
how long each body has been at rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.box2d.lunar_lander import LunarLander
from numpy.typing import NDArray

from rhirl.simulators.box2d.manifold import ON_EDGE
from rhirl.simulators.box2d.scene import VIEW_H
from rhirl.simulators.box2d.settings import BOX_MARGIN, POSITION_ITERATIONS, VELOCITY_ITERATIONS
from rhirl.simulators.box2d.simulate import FPS, observe
from rhirl.simulators.box2d.state import EDGE, World, make_worlds

# The broad phase numbers its tree nodes: eleven edges take every other number up to 19, then come the bodies.
PROXIES = (21, 23, 25)
TRIAL_STEPS = 3


def read_world(env: gymnasium.Env[Any, Any], gravity: float) -> World:
    """Return the state of the environment."""
    lander = _lander(env, gravity)
    world = World(*(array[0] for array in make_worlds(1)))
    bodies = [lander.lander, *lander.legs]
    world.terrain[:] = [_ends(fixture) for fixture in lander.moon.fixtures]
    broad_phase = lander.world.contactManager.broadPhase
    for i, body in enumerate(bodies):
        v = body.linearVelocity
        world.bodies[i, :6] = *body.worldCenter, body.angle, v.x, v.y, body.angularVelocity
        world.awake[i] = body.awake
        world.boxes[i] = _enlarged_box(broad_phase, PROXIES[i], body.fixtures[0].GetAABB(0))
    for i, leg in enumerate(lander.legs):
        joint = leg.joint
        world.hinges[i] = *joint.GetReactionForce(1.0), joint.GetReactionTorque(1.0), joint.GetMotorTorque(1.0)
    world.touched[:] = lander.game_over, *(leg.ground_contact for leg in lander.legs)
    _read_contacts(world, lander, bodies)
    return world


def _read_contacts(world: World, lander: Any, bodies: list[Any]) -> None:
    world.contacts[:, EDGE] = -1
    n = 0
    for contact in lander.world.contacts:
        # Rendered environments also have exhaust particles, which push nothing.
        if contact.fixtureB.body not in bodies:
            continue
        manifold = contact.manifold
        edge = int(np.flatnonzero((world.terrain == _ends(contact.fixtureA)).all(axis=1))[0])
        world.contacts[n, :2] = edge, bodies.index(contact.fixtureB.body)
        if contact.touching:
            ids = [point.id.key for point in manifold.points]
            world.contacts[n, 2 : 4 + len(ids)] = len(ids), manifold.type_, *ids
            world.manifolds[n, :4] = *manifold.localNormal, *manifold.localPoint
            for j, point in enumerate(manifold.points):
                impulses = point.normalImpulse, point.tangentImpulse
                world.manifolds[n, 4 + 4 * j : 8 + 4 * j] = *point.localPoint, *impulses
        else:
            world.contacts[n, 3] = ON_EDGE
        n += 1


def _ends(edge: Any) -> NDArray[np.float32]:
    """Return x1, y1, x2, y2 of an edge fixture."""
    return np.array(edge.shape.vertices, np.float32).ravel()


def _enlarged_box(broad_phase: Any, proxy: int, tight: Any) -> NDArray[np.float32]:
    """Return the box the broad phase keeps, or the box it would make now if its node is not where we expect it."""
    inner = np.array([*tight.lowerBound, *tight.upperBound], np.float32)
    outer = broad_phase.GetFatAABB(proxy)
    box = np.array([*outer.lowerBound, *outer.upperBound], np.float32)
    if (box[:2] <= inner[:2]).all() and (inner[2:] <= box[2:]).all():
        return box
    return inner + BOX_MARGIN * np.array([-1, -1, 1, 1], np.float32)


def write_world(env: gymnasium.Env[Any, Any], worlds: World, gravity: float) -> None:
    """Put the environment into the first state; impulses cannot be set and are approached by trial steps."""
    lander = _lander(env, gravity)
    world = World(*(array[0] for array in worlds))
    _write_terrain(lander, world.terrain)
    for _ in range(TRIAL_STEPS):
        _write_bodies(lander, world)
        lander.world.Step(1.0 / FPS, VELOCITY_ITERATIONS, POSITION_ITERATIONS)
    _write_bodies(lander, world)
    lander.game_over = bool(world.touched[0])
    for leg, touched in zip(lander.legs, world.touched[1:], strict=True):
        leg.ground_contact = bool(touched)
    # The next reward is the change of this potential.
    x, y, vx, vy, angle, _, left, right = observe(worlds)
    lander.prev_shaping = 10 * (left + right) - 100 * (np.hypot(x, y) + np.hypot(vx, vy) + abs(angle))


def bare_steps(env: gymnasium.Env[Any, Any], worlds: World, M: int, K: int) -> Callable[[], object]:
    """Return a function that M times puts Box2D into the first state and makes K world steps, engines off."""
    lander: Any = env.unwrapped
    world = World(*(array[0] for array in worlds))

    def run() -> None:
        for _ in range(M):
            _write_bodies(lander, world)
            for _ in range(K):
                lander.world.Step(1.0 / FPS, VELOCITY_ITERATIONS, POSITION_ITERATIONS)

    write_world(env, worlds, lander.gravity)
    return run


def _write_terrain(lander: Any, terrain: NDArray[np.float32]) -> None:
    fixtures = list(lander.moon.fixtures)
    if np.array_equal([_ends(fixture) for fixture in fixtures], terrain):
        return
    lander.sky_polys = []
    for fixture, (x1, y1, x2, y2) in zip(fixtures, terrain.tolist(), strict=True):
        friction = fixture.friction
        lander.moon.DestroyFixture(fixture)
        lander.moon.CreateEdgeFixture(vertices=[(x1, y1), (x2, y2)], density=0, friction=friction)
        lander.sky_polys.append([(x1, y1), (x2, y2), (x2, VIEW_H), (x1, VIEW_H)])
    # The first edge is the floor of the world, below the view.
    del lander.sky_polys[0]


def _write_bodies(lander: Any, world: World) -> None:
    for i, body in enumerate([lander.lander, *lander.legs]):
        center, angle = world.bodies[i, :2], float(world.bodies[i, 2])
        # Box2D takes the origin and derives the centre of mass: correct the one by the error of the other.
        origin = center
        for _ in range(2):
            body.transform = origin.tolist(), angle
            origin = origin + (center - np.array(body.worldCenter, np.float32))
        body.linearVelocity = world.bodies[i, 3:5].tolist()
        body.angularVelocity = float(world.bodies[i, 5])
        body.awake = bool(world.awake[i])


def _lander(env: gymnasium.Env[Any, Any], gravity: float) -> Any:
    """Return the environment inside its wrappers, if the simulator knows its physics."""
    inner = env.unwrapped
    if not isinstance(inner, LunarLander):
        raise TypeError(f"LunarLanderSimulator reads LunarLander-v3, not {type(inner).__name__}")
    if not inner.continuous or inner.enable_wind:
        raise ValueError("LunarLanderSimulator needs LunarLander-v3 with continuous=True and enable_wind=False")
    if inner.gravity != gravity:
        raise ValueError(
            f"the environment's gravity is {inner.gravity}, the simulator's {gravity}: make them equal"
        )
    if inner.lander is None:
        raise ValueError("reset the environment before reading or writing its state")
    return inner
