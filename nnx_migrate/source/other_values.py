"""Expressions that are no bound Linen module: values of other libraries, arrays, configurations."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache

from nnx_migrate.source.modules import FUNCTIONS
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, is_name, is_self, walk

ARRAYS = frozenset({"jax", "math", "numpy"})  # packages without modules


def is_no_module(project: Project, module: Module, node: ast.expr) -> bool:
    """Whether an expression is no bound module: of another library, or said to be something else."""
    symbol = project.resolve(node, Scope(module))
    if symbol is not None and project.split(symbol)[0] is None and not _is_bound(module, node):
        return True
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            info = project.by_node.get(id(module.parents.class_of(node)))
            fields = {one.name: one.annotation for one in info.fields} if info is not None else {}
            if info is not None and name in fields:
                return is_other_class(project, info.scope, fields[name])
        case ast.Name():
            return _holds_variable(project, module, node)
    return False


def _holds_variable(project: Project, module: Module, node: ast.Name) -> bool:
    """Whether a local of a method is what ``self.variable(...)`` gives, wherever it is bound."""
    function, cls = module.parents.function(node), module.parents.class_of(node)
    info = project.by_node.get(id(cls))
    if function is None or info is None or not info.linen or info.find("variable") is not None:
        return False
    made = [
        target
        for one in each(function, ast.Assign)
        for target in one.targets
        if is_name(target, node.id) and makes_variable(one.value)
    ]
    names = [one for one in each(function, ast.Name) if one.id == node.id]
    bound = [one for one in names if not isinstance(one.ctx, ast.Load)]
    return bool(made) and len(made) == len(bound) and node.id not in parameter_names(function)


def makes_variable(value: ast.AST) -> bool:
    """Whether an expression is ``self.variable(...)``."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="variable")):
            return True
    return False


def _is_bound(module: Module, node: ast.expr) -> bool:
    """Whether a function around binds the first name of an expression itself."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return True
    functions = (one for one in module.parents.above(node) if isinstance(one, FUNCTIONS))
    return any(node.id in _bound_inside(one) for one in functions)


@lru_cache(maxsize=1 << 14)
def _bound_inside(function: ast.AST) -> frozenset[str]:
    """Parameters and targets of a function, and of those in it."""
    nodes = walk(function)
    parameters = (one.arg for one in nodes if isinstance(one, ast.arg))
    targets = (
        one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
    )
    return frozenset((*parameters, *targets))


def is_other_class(project: Project, scope: Scope, annotation: ast.expr) -> bool:
    """Whether an annotation names a class of the project, or a builtin, that is no module.

    A file that has nothing to do with Flax is not read: none of its classes is a module.
    """
    symbol = project.resolve(annotation, scope)
    if symbol is None:
        return isinstance(annotation, ast.Name) and hasattr(builtins, annotation.id)
    root = symbol.partition(".")[0]
    if root in ARRAYS:
        return True
    is_own = any(name.partition(".")[0] == root for name in project.modules)
    return (is_own and symbol not in project.linen and project.definition(symbol) is None) or (
        symbol in project.classes and symbol not in project.linen
    )


# Attributes of modules that code applies to variables: ``bound.head.apply({"params": ...}, x)``.


@lru_cache(maxsize=2)  # every class with a layer that is not always built asks
def applied_outside(project: Project) -> frozenset[str]:
    """Names of attributes whose ``apply`` is called, of other modules than ``self``."""
    found: set[str] = set()
    for module in project.modules.values():
        for node in module.by_word.get("apply", ()):
            match node:
                case ast.Attribute(value=ast.Attribute(value=owner, attr=name)):
                    if not is_self(owner):
                        found.add(name)
    return frozenset(found)
