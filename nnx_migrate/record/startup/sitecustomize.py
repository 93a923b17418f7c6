"""Runs when a Python process of ``nnx-migrate record`` starts; then hands over to its own one.

Kept to what any Python 3 can read: the recorded command may start others than the one it records.
"""

from __future__ import annotations

import os
import sys


def _start() -> list[str]:
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path[:] = others
    if sys.version_info >= (3, 11) and "NNX_MIGRATE_RECORD" in os.environ:
        _load(os.path.dirname(os.path.dirname(here)))
        from nnx_migrate.record.hook import start

        start()
    return others


def _load(package: str) -> None:
    """Make this very copy of nnx_migrate importable without touching sys.path."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(
        "nnx_migrate", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["nnx_migrate"] = module
        spec.loader.exec_module(module)


def _hand_over(others: list[str]) -> None:
    """Run the sitecustomize that this one hides."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_hand_over(_start())
