"""Functions that a module gives to a submodule and that read the module or its call.

Linen builds the submodule in each call, with a new function: ``Block(lambda x: self.dense(x))(x)``. An
explicit submodule is built once, and keeps the function that the first call gave it.
"""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.module_reads import ModuleReads, plain_fields
from nnx_migrate.rewrite.outside.places import Places
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk


def reads_module(project: Project, places: Places, value: ast.expr) -> bool:
    """Whether the value, in a method of a Linen module, holds such a function."""
    method = _method_around(project, places, value)
    if method is None:
        return False
    cls, function = method
    receiver = receiver_of(function)
    reads = ModuleReads(cls, plain_fields(project, cls))
    local = {name for one in function.body for name in bound_names(one)}
    local |= {*parameter_names(function)} - {receiver}
    functions = {
        one.name
        for one in each(function, ast.FunctionDef)
        if one is not function and reads.by_function(one, receiver, local)
    }
    return any(_reads(reads, node, receiver, local, functions) for node in walk(value))


def _method_around(
    project: Project, places: Places, node: ast.AST
) -> tuple[ClassInfo, ast.FunctionDef] | None:
    """The outermost method of a Linen class that the node stands in."""
    while node in places:
        above = places.parent(node)
        cls = project.by_node.get(id(above))
        if cls is not None and cls.linen and isinstance(node, ast.FunctionDef):
            return cls, node
        if above is None:
            break
        node = above
    return None


def _reads(
    reads: ModuleReads, node: ast.AST, receiver: str, local: set[str], functions: set[str]
) -> bool:
    match node:
        case ast.Lambda():
            return reads.by_function(node, receiver, local)
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
            return reads.by_method(attr)
        case ast.Name(id=name):
            return name in functions
    return False
