"""What the attributes of modules hold: modules of known classes, data, or nobody knows what."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.other_values import ARRAYS, is_other_class
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each, is_name, is_self, walk


def classes_of(project: Project, module: Module, node: ast.expr) -> frozenset[str] | None:
    """The classes of which ``self.part`` is made in a Linen class, where they are plain."""
    if not isinstance(node, ast.Attribute) or not is_self(node.value):
        return None
    info = project.by_node.get(id(module.parents.class_of(node)))
    if info is None or info.name not in project.linen:
        return None
    return made_of(project, info, node.attr)


def owners_of(project: Project, module: Module, node: ast.AST) -> frozenset[str] | None:
    """The classes of the project of whose modules an attribute is read; None: nobody knows."""
    if not isinstance(node, ast.Attribute):
        return None
    if not is_self(node.value):
        return classes_of(project, module, node.value)
    info = project.by_node.get(id(module.parents.class_of(node)))
    if info is None or info.name not in project.linen:
        return None
    return frozenset(one.name for one in _heirs(project, info))


@lru_cache(maxsize=1024)  # every attribute of a class asks
def _heirs(project: Project, info: ClassInfo) -> tuple[ClassInfo, ...]:
    """A class and those that inherit from it."""
    return tuple(one for one in project.linen.values() if info in one.mro)


@lru_cache(maxsize=4096)  # every place that reads the attribute asks
def made_of(project: Project, info: ClassInfo, name: str) -> frozenset[str] | None:
    """The classes of the project whose modules an attribute of a class holds; None: nobody knows."""
    if name in info.field_names:
        return None
    found: set[str] = set()
    is_layer = False
    # A subclass may set it, too.
    for owner in {id(one): one for heir in _heirs(project, info) for one in heir.mro}.values():
        if any(is_name(one, "setattr") for one in each(owner.node, ast.Name)):
            return None
        for method in owner.methods.values():
            for value in assigned_in(method).get(f"self.{name}", ()):
                called = value.func if isinstance(value, ast.Call) else None
                symbol = project.resolve(called, owner.scope) if called is not None else None
                if symbol is None or (symbol not in project.linen and not is_linen(symbol)):
                    return None
                if symbol in project.linen:
                    found.add(symbol)
                is_layer = is_layer or is_linen(symbol)
    return frozenset(found) if found or is_layer else None


def plain_members(project: Project, cls: ClassInfo) -> set[str]:
    """Attributes that methods set to numbers, strings and the like, worked out of the fields."""
    found: dict[str, bool] = {}
    for owner in cls.mro:
        for method in owner.methods.values():
            values = assigned_in(method)
            for node in walk(method):
                match node:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                        attribute_values = values.get(f"self.{name}", [None])
                        plain = all(
                            _is_plain(project, owner, values, one) for one in attribute_values
                        )
                        found[name] = found.get(name, True) and plain
    return {name for name, plain in found.items() if plain}


@lru_cache(maxsize=4096)
def assigned_in(method: ast.FunctionDef) -> dict[str, list[ast.expr | None]]:
    """What the names of a method, and the attributes of self, are assigned; None: something else."""
    found: dict[str, list[ast.expr | None]] = {}
    plainly: set[int] = set()
    for node in walk(method):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name | ast.Attribute):
                plainly.add(id(target))
                found.setdefault(ast.unparse(target), []).append(node.value)
    for node in walk(method):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in plainly:
            if not isinstance(node.ctx, ast.Load):
                found.setdefault(ast.unparse(node), []).append(None)
        elif isinstance(node, ast.arg) and node.arg != "self":
            found.setdefault(node.arg, []).append(None)
    return found


def _is_plain(
    project: Project,
    cls: ClassInfo,
    values: dict[str, list[ast.expr | None]],
    node: ast.AST | None,
    depth: int = 6,
) -> bool:
    """Whether an expression gives no module and no variable."""
    if node is None or depth == 0:
        return False
    if isinstance(node, ast.Name | ast.Attribute):
        text = ast.unparse(node)
        if text in values:
            return all(_is_plain(project, cls, values, one, depth - 1) for one in values[text])
        if isinstance(node, ast.Attribute) and not is_self(node.value):
            return _is_plain(project, cls, values, node.value, depth - 1)
        if isinstance(node, ast.Attribute):
            kinds = [one.annotation for one in cls.fields if one.name == node.attr]
            return bool(kinds) and is_other_class(project, cls.scope, kinds[0])
        symbol = project.resolve(node, cls.scope)
        return hasattr(builtins, node.id) if symbol is None else project.split(symbol)[0] is None
    if isinstance(node, ast.Call):
        symbol = project.resolve(node.func, cls.scope)
        head = (symbol or "").partition(".")[0]
        builtin = (
            isinstance(node.func, ast.Name) and symbol is None and hasattr(builtins, node.func.id)
        )
        if not builtin and head not in ARRAYS:
            return False
    if isinstance(node, ast.Lambda | ast.Starred | ast.NamedExpr | ast.Await):
        return False
    parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr | ast.keyword)]
    return all(_is_plain(project, cls, values, one, depth) for one in parts)
