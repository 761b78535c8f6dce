"""Any pure JAX transition function as a simulator: rollouts are one compiled `vmap` of a `scan`.

    x_{k+1} = transition(x_k, v_k),        or  transition(x_k, v_k, key_k) for a system with noise of its own
    observation_k = observe(x_k)

A state is any pytree of arrays: a vector, a tuple, a dictionary, a named tuple. JAX computes in its own precision,
float32 unless its x64 mode is on; outside, states are NumPy arrays, as the protocol asks.

A double integrator that is pushed about by wind:

    def transition(x, v, key):
        return x + 0.1 * jnp.stack([x[1], v[0] + jax.random.normal(key)])

    simulator = JaxSimulator(
        transition,
        observe=lambda x: x,
        reset=lambda key: jax.random.uniform(key, (2,), minval=-1, maxval=1),
        control_dim=1,
        stochastic=True,
    )
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from rhirl.simulators.checks import check_controls
from rhirl.simulators.protocol import Rollout, State


class JaxSimulator:
    """A simulator made of pure functions.

    Args:
        transition: f(x, v) → x', or f(x, v, key) → x' if `stochastic`; v is (m,), clipped to [-1, 1].
        observe: x → observation; floating point becomes float32, and uint8 images stay bytes.
        reset: key → x_0 ~ μ.
        control_dim: Number of controls m.
        terminated: x → whether the task ends there; by default it never does.
        stochastic: Whether the dynamics draw noise; every step of every rollout then gets a key of its own,
            derived from `seed`.
    """

    def __init__(
        self,
        transition: Callable[..., Any],
        observe: Callable[[Any], Array],
        reset: Callable[[Array], Any],
        *,
        control_dim: int,
        terminated: Callable[[Any], Any] | None = None,
        stochastic: bool = False,
    ) -> None:
        self.control_dim = control_dim
        self._like = jax.eval_shape(reset, jax.random.key(0))
        self.observation_shape: tuple[int, ...] = jax.eval_shape(observe, self._like).shape
        self._reset, self._observe = jax.jit(lambda seed: reset(_key(seed))), jax.jit(observe)
        self._terminated = None if terminated is None else jax.jit(terminated)
        advance = transition if stochastic else _without_key(transition)
        self._rollouts = jax.jit(partial(_rollouts, advance, observe))

    def reset(self, seed: int) -> State:
        """Draw x_0 with the key of `seed`."""
        return jax.tree.map(np.asarray, self._reset(_halves(seed)))

    def observe(self, state: State) -> NDArray[Any]:
        """Return the observation of x."""
        return _outside(self._observe(self._inside(state)))

    def step(self, state: State, control: NDArray[Any], seed: int = 0) -> State:
        """Advance by one control: a rollout with M = K = 1."""
        V = check_controls(np.asarray(control)[None, None], self.control_dim)
        states, _, _ = self._rollouts(self._inside(state), V, _halves(seed))
        return jax.tree.map(lambda leaf: np.array(np.asarray(leaf)[0, 0]), states)

    def terminated(self, state: State) -> bool:
        """Ask the system whether its task ends in x."""
        return self._terminated is not None and bool(self._terminated(self._inside(state)))

    def rollout(self, state: State, controls: NDArray[Any], seed: int = 0) -> Rollout:
        """Roll out V (M, K, m) from x; a rollout with a state or observation that is not finite is invalid."""
        V = check_controls(controls, self.control_dim)
        _, observations, valid = self._rollouts(self._inside(state), V, _halves(seed))
        return Rollout(_outside(observations), np.asarray(valid))

    def _inside(self, state: State) -> Any:
        """Return the state with JAX's types, or say why it cannot be one of this system."""
        shapes, expected = (jax.tree.map(np.shape, tree) for tree in (state, self._like))
        if shapes != expected:
            raise ValueError(f"a state here has shape {expected}, not {shapes}: is it of another task?")
        return jax.tree.map(lambda leaf, like: np.asarray(leaf, like.dtype), state, self._like)


def _rollouts(
    transition: Callable[[Any, Array, Array], Any],
    observe: Callable[[Any], Array],
    state: Any,
    V: Array,
    seed: Array,
) -> tuple[Any, Array, Array]:
    """Return states x_1 … x_K (M, K, …), observations (M, K + 1, *n), and (M,) which rollouts are valid."""

    def step(x: Any, given: tuple[Array, Array]) -> tuple[Any, tuple[Any, Array, Array]]:
        x = transition(x, *given)
        seen = observe(x)
        return x, (x, seen, _finite(x) & _finite(seen))

    def one(v: Array, keys: Array) -> tuple[Any, Array, Array]:
        _, (states, seen, finite) = jax.lax.scan(step, state, (v, keys))
        start = observe(state)
        return states, jnp.concatenate([start[None], seen]), finite.all() & _finite(state) & _finite(start)

    return jax.vmap(one)(jnp.clip(V, -1.0, 1.0), jax.random.split(_key(seed), V.shape[:2]))


def _without_key(transition: Callable[[Any, Array], Any]) -> Callable[[Any, Array, Array], Any]:
    return lambda x, v, _: transition(x, v)


def _finite(tree: Any) -> Array:
    return jnp.all(jnp.array([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]))


def _outside(observations: Array) -> NDArray[Any]:
    """NumPy, in one of the two types observations have."""
    return np.array(observations, np.uint8 if observations.dtype == jnp.uint8 else np.float32)


def _halves(seed: int) -> NDArray[np.uint32]:
    """Split a seed into its upper and lower 32 bits; `jax.random.key` would drop the upper ones in silence."""
    return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)


def _key(halves: Array) -> Array:
    return jax.random.fold_in(jax.random.key(halves[1]), halves[0])
