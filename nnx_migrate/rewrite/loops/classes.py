"""Classes whose plain call does more than Linen's ``apply`` lets it."""

from __future__ import annotations

import ast

from nnx_migrate.constructs import all_layers
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project

# What of `nnx_migrate.nn` keeps or makes state of other collections, which a plain call may change.
_STATEFUL = frozenset(
    "get_variable has_variable is_initializing is_mutable_collection lazy_variable perturb "  # noqa: SIM905
    "put_variable variable variable_type".split()
)
# Variables with names of axes are boxes in Linen's trees, which the optimizer sees.
_NAMED_AXES = frozenset(
    "with_logical_partitioning with_metadata "  # noqa: SIM905
    "with_partitioning".split()
)
# What may hold variables that are no parameters, which an optimizer of all variables changes, too:
# so may a module of Linen's, and one that the first call builds.
_MAY_HOLD = frozenset({"BatchStat", "SpectralNorm", "ToNNX", "lazy"})
_LAZY = "nnx_migrate.linen."  # whose names in an explicit class build what the first call sizes


def statistics(project: Project, module: Module) -> str | None:
    """Why modules of a file may hold variables beside their parameters."""
    names = _MAY_HOLD | {one.name for one in all_layers().values() if one.has_statistics}
    for cls in project.classes.values():
        if cls.module is not module:
            continue
        for node in ast.walk(cls.node):
            name = node.id if isinstance(node, ast.Name) else ""
            name = node.attr if isinstance(node, ast.Attribute) else name
            if name in names:
                return f"{cls.qualname} may have variables beside its parameters ({name})"
    return None


def unknown_state(project: Project, module: Module) -> str | None:
    """Why modules of a file may hold state that the loop does not know of."""
    for cls in project.classes.values():
        if cls.module is not module:
            continue
        for node in ast.walk(cls.node):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            symbol = project.resolve(node, cls.scope) or ""
            is_lazy = symbol in project.linen or symbol.startswith(_LAZY)
            if is_lazy and _is_explicit(cls):
                # Built, that one draws from streams of its own, whatever keys a call is given.
                return f"{cls.qualname} holds a lazy submodule ({symbol})"
            home, _, name = symbol.rpartition(".")
            if home == "nnx_migrate.nn" and name in _STATEFUL:
                return f"{cls.qualname} has state beside parameters and running statistics ({name})"
            if home == "nnx_migrate.sharding" or name in _NAMED_AXES:
                return f"{cls.qualname} names axes of its variables ({name})"
    return None


def _is_explicit(cls: ClassInfo) -> bool:
    return any("flax.nnx.Module" in one.bases for one in cls.mro)
