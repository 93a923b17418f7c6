"""Code that changes Linen's own classes and functions: explicit classes are of NNX's, and do not see it.

``nn.Module.param = counted``, ``mock.patch.object(nn.Dense, "__call__", fake)``, ``nn.relu = fake``.
"""

from __future__ import annotations

import ast

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.outside.places import places_of
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.source.attribute_uses import SETTERS, attribute_uses
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.names import first_name, last_name
from nnx_migrate.source.project import Module, Project

_REASON = "what flax.linen itself has is changed here, and NNX's is not"
_PATH = "flax.linen."


@Fact  # every attempt of a run asks
def changed_layers(project: Project) -> Doubt | None:
    """The first place of the project that sets or deletes an attribute of Linen's."""
    for module in project.modules.values():
        for node in module.nodes:
            if _changes(project, module, node) or _hands_on(project, module, node):
                return Doubt(module.path, getattr(node, "lineno", 1), _REASON)
    return None


def _changes(project: Project, module: Module, node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=owner, ctx=ast.Store() | ast.Del()):
            return _is_of_linen(project, module, owner)
        case ast.Call(func=called, args=[ast.Constant(value=str() as path), *_]):
            return path.startswith(_PATH) and last_name(called) in (*SETTERS, "patch")
        case ast.Call(func=called, args=[owner, *_]) if last_name(called) in SETTERS:
            return _is_of_linen(project, module, owner)
    return False


def _hands_on(project: Project, module: Module, node: ast.AST) -> bool:
    """Whether code that gets one of Linen's under another name sets an attribute of it."""
    if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    match module.parents.of(node):
        case ast.Call(func=called) if called is node:
            return False
        case ast.Call() | ast.keyword() | ast.Assign() | ast.Tuple() | ast.List():
            return _is_of_linen(project, module, node) and attribute_uses(project).changes(
                module, node
            )
    return False


def _is_of_linen(project: Project, module: Module, node: ast.expr) -> bool:
    places = places_of(module, frozenset())
    if first_name(node) is None or node not in places:
        return False
    return is_linen(project.resolve(node, places[node].scope))
