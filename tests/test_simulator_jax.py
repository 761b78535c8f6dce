"""Any pure JAX function as a simulator: the protocol, its noise, and what it refuses."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from numpy.typing import NDArray

import rhirl.simulators.jax as module
from rhirl.simulators.jax import JaxSimulator
from rhirl.simulators.protocol import Simulator

A = jnp.array([[1.0, 0.5], [0.0, 0.75]])
B = jnp.array([[0.25], [0.5]])


def linear(x: Array, v: Array) -> Array:
    return A @ x + B @ v


def windy(x: Array, v: Array, key: Array) -> Array:
    return linear(x, v) + 0.5 * jax.random.normal(key, (2,))


def make(transition: Any = linear, **kwargs: Any) -> JaxSimulator:
    arguments: dict[str, Any] = {
        "observe": lambda x: x,
        "reset": lambda key: jax.random.uniform(key, (2,), minval=-1, maxval=1),
        "control_dim": 1,
    }
    return JaxSimulator(transition, **(arguments | kwargs))


LINEAR = make()
M, K = 4, 6


def random_controls() -> NDArray[np.float32]:
    return np.random.default_rng(0).uniform(-1, 1, (M, K, 1)).astype(np.float32)


def test_a_linear_system_follows_its_closed_form() -> None:
    assert isinstance(LINEAR, Simulator)
    assert (LINEAR.observation_shape, LINEAR.control_dim) == ((2,), 1)
    x0, V = LINEAR.reset(3), random_controls()
    rollout = LINEAR.rollout(x0, V)
    assert rollout.observations.shape == (M, K + 1, 2)
    assert rollout.observations.dtype == np.float32
    assert rollout.valid.tolist() == [True] * M
    powers = [np.linalg.matrix_power(np.asarray(A), k) for k in range(K + 1)]
    for j in range(M):
        for k in range(K + 1):
            exact = powers[k] @ x0 + sum(powers[k - 1 - i] @ np.asarray(B) @ V[j, i] for i in range(k))
            np.testing.assert_allclose(rollout.observations[j, k], exact, atol=1e-6)


def test_steps_lead_where_the_rollout_leads() -> None:
    V, x = random_controls(), LINEAR.reset(0)
    observations = LINEAR.rollout(x, V).observations[0]
    for k, v in enumerate(V[0]):
        np.testing.assert_allclose(LINEAR.observe(x), observations[k], atol=1e-6)
        x = LINEAR.step(x, v)
    assert type(x) is np.ndarray
    np.testing.assert_allclose(LINEAR.observe(x), observations[-1], atol=1e-6)


def test_states_may_be_any_pytree_and_keep_their_types() -> None:
    simulator = make(
        lambda x, v: {"count": x["count"] + 1, "at": (x["at"][0] + v[0],)},
        observe=lambda x: jnp.stack([x["at"][0], x["count"].astype(float)]),
        reset=lambda key: {"count": jnp.zeros((), jnp.int32), "at": (jax.random.uniform(key),)},
    )
    state = simulator.reset(0)
    after = simulator.step(state, np.array([0.5]))
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(after))
    assert after["count"] == 1
    assert after["count"].dtype == np.int32
    assert after["at"][0] == state["at"][0] + np.float32(0.5)
    np.testing.assert_array_equal(simulator.observe(after), [after["at"][0], 1.0])


def test_controls_are_clipped_to_the_box() -> None:
    x, V = LINEAR.reset(0), np.sign(random_controls())
    assert LINEAR.rollout(x, 10 * V).observations.tobytes() == LINEAR.rollout(x, V).observations.tobytes()


def test_noise_comes_from_the_seed_alone_and_is_new_for_every_step_and_rollout() -> None:
    simulator = make(windy, stochastic=True)
    x, V = simulator.reset(0), np.zeros((400, 5, 1), np.float32)
    a, b, c = (simulator.rollout(x, V, seed=seed).observations for seed in (1, 1, 2))
    assert a.tobytes() == b.tobytes()
    assert (a[:, 1:] != c[:, 1:]).mean() > 0.999
    noise = (a[:, 1:] - a[:, :-1] @ np.asarray(A).T) / 0.5
    assert np.unique(noise).size > 0.999 * noise.size
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)
    assert (simulator.step(x, V[0, 0], seed=5) == simulator.step(x, V[0, 0], seed=5)).all()
    assert (simulator.step(x, V[0, 0], seed=5) != simulator.step(x, V[0, 0], seed=6)).all()


def test_seeds_differ_in_all_their_bits() -> None:
    starts = {LINEAR.reset(seed).tobytes() for seed in (0, 1, 2**31, 2**32, 2**32 + 1, 2**33, 2**62)}
    assert len(starts) == 7
    assert LINEAR.reset(2**33).tobytes() == LINEAR.reset(2**33).tobytes()


def test_a_rollout_that_diverges_is_marked_and_disturbs_no_other() -> None:
    simulator = make(lambda x, v: jnp.where(v[0] > 0.9, x / 0.0, linear(x, v)))
    x, V = np.ones(2, np.float32), 0.5 * random_controls()
    good = simulator.rollout(x, V)
    V[2, 3] = 1.0
    bad = simulator.rollout(x, V)
    assert bad.valid.tolist() == [True, True, False, True]
    assert bad.observations[bad.valid].tobytes() == good.observations[bad.valid].tobytes()


def test_a_state_that_diverges_out_of_sight_is_marked_too() -> None:
    simulator = make(lambda x, v: x.at[1].set(jnp.nan), observe=lambda x: x[:1])
    rollout = simulator.rollout(np.zeros(2, np.float32), random_controls())
    assert np.isfinite(rollout.observations).all()
    assert rollout.valid.tolist() == [False] * M


def test_controls_that_are_not_finite_make_a_rollout_invalid() -> None:
    V = random_controls()
    V[1, 2] = np.nan
    assert LINEAR.rollout(np.zeros(2), V).valid.tolist() == [True, False, True, True]


def test_images_stay_bytes() -> None:
    simulator = make(observe=lambda x: jnp.full((4, 4, 3), 200, jnp.uint8))
    assert simulator.observation_shape == (4, 4, 3)
    rollout = simulator.rollout(simulator.reset(0), random_controls())
    assert rollout.observations.dtype == np.uint8
    assert rollout.observations.shape == (M, K + 1, 4, 4, 3)


def test_the_task_ends_where_the_system_says() -> None:
    simulator = make(terminated=lambda x: x[0] > 1)
    assert simulator.terminated(np.array([2.0, 0.0])) is True
    assert simulator.terminated(np.array([0.0, 2.0])) is False
    assert LINEAR.terminated(np.array([2.0, 0.0])) is False


@pytest.mark.parametrize("shape", [(2, 3), (2, 0, 1), (2, 3, 2), (6,)])
def test_controls_of_another_system_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="controls must have shape"):
        LINEAR.rollout(np.zeros(2), np.zeros(shape))


@pytest.mark.parametrize("state", [np.zeros(3), (np.zeros(2),), {"x": np.zeros(2)}, np.zeros(())])
def test_states_of_another_system_are_refused(state: Any) -> None:
    for use in (
        LINEAR.observe,
        lambda x: LINEAR.step(x, np.zeros(1)),
        lambda x: LINEAR.rollout(x, random_controls()),
    ):
        with pytest.raises(ValueError, match=r"a state here has shape \(2,\)"):
            use(state)


def test_the_example_of_the_docstring_runs() -> None:
    text = ast.get_docstring(ast.parse(Path(str(module.__file__)).read_text()))
    assert text is not None
    example = text[text.index("    def transition") :]
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "JaxSimulator": JaxSimulator}
    exec("\n".join(line[4:] for line in example.splitlines()), names)
    rollout = names["simulator"].rollout(np.zeros(2), np.zeros((2, 3, 1)), seed=1)
    assert rollout.observations.shape == (2, 4, 2)
    assert rollout.observations[0, -1, 0] != rollout.observations[1, -1, 0]
