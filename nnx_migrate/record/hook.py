"""Wait for ``flax.linen`` in this process, and wrap it as soon as it is there."""

from __future__ import annotations

import importlib.abc
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

FILE = "NNX_MIGRATE_RECORD"  # the evidence file
SECONDS = "NNX_MIGRATE_RECORD_SECONDS"  # what tracing may take when a process ends
SHIM = "NNX_MIGRATE_RECORD_SHIM"  # a file to run first
_WAITED_FOR = "flax.linen"


class LinenFinder(importlib.abc.MetaPathFinder):
    """Finds ``flax.linen`` as the other finders do, and has the recorder started after it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ``flax.linen``, whose loader then starts the recorder; else None."""
        if name != _WAITED_FOR:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                _after(spec.loader)
                return spec
        return None


def _after(loader: importlib.abc.Loader) -> None:
    """Make this one loader start the recorder once it has run the module."""
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        from nnx_migrate.record.session import begin

        begin(Path(os.environ[FILE]), float(os.environ[SECONDS]))

    loader.exec_module = exec_module  # type: ignore[method-assign]


def start() -> None:
    """Prepare a fresh process: run the shim, then wait for ``flax.linen``."""
    sys.meta_path.insert(0, LinenFinder())
    shim = os.environ.get(SHIM)
    if shim:
        runpy.run_path(shim, run_name="nnx_migrate_shim")
