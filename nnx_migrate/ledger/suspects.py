"""Names of one file that may lead to Linen: no other name is worth resolving.

Every scope of the file is taken together, so this is wider than what `resolve` finds.
"""

from __future__ import annotations

import ast

from nnx_migrate.ledger.project import Project
from nnx_migrate.ledger.reach import bound_by, brings_flax
from nnx_migrate.ledger.resolve import Taints
from nnx_migrate.ledger.scope_data import Binding, Unit
from nnx_migrate.ledger.statements import imports_of


def suspects(unit: Unit, taints: Taints, project: Project) -> frozenset[str] | None:
    """The names; None when a star import may have bound any."""
    if unit.stars:
        return None
    found = {
        name
        for node in unit.imports
        for one in imports_of(node, unit.module, unit.package)
        if brings_flax(one, taints, project)
        or (one.kind == "import" and project.has(project.locate(one.target, one.importer)))
        for name in bound_by(one, taints, project)
    }
    aliases = [
        (name, source)
        for name, binding in unit.bindings
        for source in _sources(binding)
        if name != source
    ]
    while more := {name for name, source in aliases if source in found} - found:
        found |= more
    return frozenset(found)


def _sources(binding: Binding) -> list[str]:
    """Names whose value a binding may hand on: of an alias, and of what is bound in a class."""
    if binding.kind == "class" and binding.inner is not None:
        return list(binding.inner.bindings)
    node = binding.node.value if isinstance(binding.node, ast.AnnAssign) else binding.node
    while isinstance(node, ast.Attribute):
        node = node.value
    return [node.id] if isinstance(node, ast.Name) else []
