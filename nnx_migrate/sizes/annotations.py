"""What the annotation of a field names."""

from __future__ import annotations

import ast

from nnx_migrate.source.classes import Field
from nnx_migrate.source.names import name_parts
from nnx_migrate.source.project import Project


def says_module(project: Project, one: Field) -> bool:
    """Whether a field's annotation says that it holds a module: ``body: nn.Module``, ``body: Block``."""
    symbol = annotated_symbol(project, one)
    return symbol == "flax.linen.Module" or symbol in project.linen


def annotated_symbol(project: Project, one: Field) -> str:
    """What a field's annotation names, ``Optional`` or ``| None`` aside; "" when nothing plain."""
    node = one.annotation
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Optional"):
        node = node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        node = node.left
    if name_parts(node) is None:
        return ""
    return project.resolve(node, one.owner.scope) or ""
