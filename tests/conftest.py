"""Settings of every test. jax is not imported here: many tests must not need it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests import selection

os.environ["NNX_MIGRATE_CACHE"] = ""  # nothing of other runs
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")

# Eight simulated devices for tests of sharding; everything else runs on the first one.
_DEVICES = "--xla_force_host_platform_device_count"
if _DEVICES not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_DEVICES}=8".strip()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of what takes long to `make test-deep`."""
    selection.mark(items, selection.read())


@pytest.fixture(autouse=True)
def _settings_of_jax_stay(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undo what a command that runs in the test's own process sets for built-in models."""
    flags = os.environ["XLA_FLAGS"]
    with _optimizations(request.node.get_closest_marker("optimized") is not None):
        yield
    os.environ["XLA_FLAGS"] = flags
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_remove_size_one_mesh_axis_from_type", False)


@contextmanager
def _optimizations(are_needed: bool) -> Iterator[None]:
    """All that XLA has, where `make test` compiles quickly instead."""
    is_quick = os.environ.get("JAX_DISABLE_MOST_OPTIMIZATIONS") == "1"
    if not (are_needed and is_quick):
        yield
        return
    config = sys.modules["jax"].config
    config.update("jax_disable_most_optimizations", False)
    yield
    config.update("jax_disable_most_optimizations", True)


@pytest.fixture(scope="module")
def explicit_engine() -> Iterator[None]:
    """Let `rewrite` be the explicit engine alone: what it cannot prove stays Linen, with reasons."""
    from nnx_migrate.rewrite import forms
    from nnx_migrate.rewrite.engine import rewrite_project

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            forms, "rewrite_in", lambda request, form, loop, names: rewrite_project(request)
        )
        yield
