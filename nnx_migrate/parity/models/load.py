"""Import the reference models: one package per family, below the fixtures' directory."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from nnx_migrate import fixtures

# The fixtures are data of this project, not a package of its own: they are found by
# ``nnx_migrate.fixtures`` and imported under a name that nothing else has.
PACKAGE = "nnx_migrate_fixtures"


def load(name: str) -> ModuleType:
    """Return a module below the fixtures by dotted name: ``deepseek.linen.model``.

    Raises:
        FileNotFoundError: the installation is incomplete.
        ModuleNotFoundError: there is no such module.
    """
    if PACKAGE not in sys.modules:
        package = ModuleType(PACKAGE)
        package.__path__ = [str(fixtures.path())]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.{name}")
