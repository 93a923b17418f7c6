"""Settings of every test. jax is not imported here: many tests must not need it."""

import os
import platform
import sys
from collections.abc import Iterator

import pytest

from tests import selection

os.environ["NNX_MIGRATE_CACHE"] = ""  # nothing of other runs
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")

# Eight simulated devices for tests of sharding; everything else runs on the first one. No instruction that
# multiplies and adds: XLA uses more or less of them as the processor and what stands around them are, and
# each rounds once where two operations round twice.
_FLAGS = {"--xla_force_host_platform_device_count": "8"}
if platform.machine().lower() in ("x86_64", "amd64"):
    _FLAGS["--xla_cpu_max_isa"] = "AVX"
for _name, _value in _FLAGS.items():
    if _name not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_name}={_value}".strip()


def pytest_configure(config: pytest.Config) -> None:
    """Compile a program once for all processes and runs: half of the time went into compiling again.

    The key of what is kept is the program itself, XLA's options and version. `pytest --cache-clear` forgets it.
    """
    if config.pluginmanager.hasplugin("cacheprovider"):
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("compiled")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of what takes long to `make test-deep`."""
    selection.mark(items, selection.read())


@pytest.fixture(autouse=True)
def _settings_of_jax_stay() -> Iterator[None]:
    """Undo what a command that runs in the test's own process sets for built-in models."""
    flags = os.environ["XLA_FLAGS"]
    yield
    os.environ["XLA_FLAGS"] = flags
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_remove_size_one_mesh_axis_from_type", False)


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
