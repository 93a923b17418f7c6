"""Names below ``flax.linen`` that ``nnx_migrate.linen`` lacks: private ones, and those of no flax we support.

Read off the text of our own package, so that a rewrite imports neither jax nor flax.
"""

from __future__ import annotations

import ast
import re
from functools import cache

from nnx_migrate.source.linen_names import LINEN, linen_file, linen_names
from nnx_migrate.source.roots import bindings, imports
from nnx_migrate.source.walking import walk

_CORE_LIFT = "flax.core.lift"


@cache  # every reference of a project asks, twice
def is_missing(symbol: str) -> bool:
    """Whether a symbol of ``flax.linen`` names nothing in ``nnx_migrate.linen``.

    Of members of classes only private ones are looked for: others may be fields of the user's.

    >>> is_missing("flax.linen.Module"), is_missing("flax.linen.module._no_such_name")
    (False, True)
    """
    module: tuple[str, ...] = ()
    parts = symbol.split(".")[2:]
    for position, name in enumerate(parts):
        if linen_file((*module, name)) is not None:
            module = (*module, name)
        elif name not in linen_names(module):
            return not name.startswith("__")
        else:
            private = [one for one in parts[position + 1 :] if one.startswith("_")]
            return any(not one.startswith("__") and one not in _members() for one in private)
    return False


def names_core_lift(text: str) -> bool:
    """Whether a file names ``flax.core.lift``, the lifts of functions of scopes.

    >>> names_core_lift("from flax.core import (\\n    freeze,\\n    lift,\\n)"), names_core_lift("lift = 3")
    (True, False)
    >>> names_core_lift("from flax import core\\ncore.lift.vmap(f)"), names_core_lift("import flax\\nlift.vmap(f)")
    (True, False)
    """
    found = [pair for one in imports(text) for pair in bindings(*one)] if "lift" in text else []
    return any(
        f"{path}.".startswith(f"{_CORE_LIFT}.") or _reads_core_lift(text, name, path)
        for name, path in found
    )


def _reads_core_lift(text: str, name: str, path: str) -> bool:
    """Whether it is read as an attribute of what an import binds: ``flax.core.lift`` of ``import flax``."""
    package = name if path.startswith(f"{name}.") else path  # ``import flax.core`` binds flax
    if not _CORE_LIFT.startswith(f"{package}."):
        return False
    return re.search(rf"\b{name}{re.escape(_CORE_LIFT.removeprefix(package))}\b", text) is not None


@cache
def _members() -> frozenset[str]:
    """Names of methods and attributes of our classes."""
    nodes = [
        node
        for file in sorted(LINEN.rglob("*.py"))
        for node in walk(ast.parse(file.read_text(encoding="utf-8")))
    ]
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    stored = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return frozenset(defined | stored)
