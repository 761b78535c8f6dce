"""What several test files share: a small configuration, a few demonstrations, and ways to compare learners."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rhirl.demos import Demonstrations, load_demos
from rhirl.experiments import configure
from rhirl.learning import RHIRL, Config
from rhirl.simulators import Simulator
from rhirl.simulators.pendulum import PendulumSimulator
from rhirl.tasks import get_task

Make = Callable[..., RHIRL]
# One configuration for learners and for runs, so that all tests of a session share what is compiled.
SETTINGS = (
    "iterations=80",
    "parallel=2",
    "hidden=(8,)",
    "lr=1e-3",
    "decay=False",
    "weight_decay=0.1",
    "average=0.9",
    "planner.K=5",
    "planner.M=8",
    "planner.beta=0.5",
    "planner.lam=0.1",
    "planner.knots=None",
    "deploy=None",
)

# Jobs in the background inherit an ignored Ctrl-C, and so would every process a test starts to interrupt it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep explanations for this session alone, so that no test meets what an earlier session left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """Leave the compiler's costly passes out, for a file whose programs run for milliseconds.

    Such programs round differently: none may be left in the cache for a file that compares bits between processes.
    """
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()


@pytest.fixture(scope="session")
def pendulum_demos() -> Demonstrations:
    """Three bundled demonstrations of Pendulum."""
    return load_demos("pendulum").take(3)


@pytest.fixture(scope="session")
def small() -> Config:
    """A configuration so small that a hundred steps take a moment."""
    return configure(get_task("pendulum"), "default", SETTINGS)


@pytest.fixture
def make_learner(pendulum_demos: Demonstrations, small: Config) -> Make:
    """Make a small learner of Pendulum, with whatever is given changed."""

    def make(
        simulator: Simulator | None = None, config: Config | None = None, *, noise: float = 0.0, seed: int = 0
    ) -> RHIRL:
        return RHIRL(simulator or PendulumSimulator(), pendulum_demos, config or small, noise=noise, seed=seed)

    return make


@pytest.fixture(scope="session")
def bits() -> Callable[[Any], list[bytes]]:
    """Return every bit of a pytree, for comparing two of them exactly."""

    def of(tree: Any) -> list[bytes]:
        return [np.asarray(_plain(leaf)).tobytes() for leaf in jax.tree.leaves(tree)]

    return of


def _plain(leaf: Any) -> Any:
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf
