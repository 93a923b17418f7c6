"""Decorators of the class statement, other than ``dataclass``.

A Linen module is a dataclass, and a decorator may use that: read its fields, wrap its ``__init__``. A
function of the project that mentions neither stays as it is; one that does gets the class through
``nnm.class_decorator``, which shows it a constructor of the fields alone. What is not a function of
the project is refused, unless it is known not to look at the constructor.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from nnx_migrate.edit.calls import call, named
from nnx_migrate.edit.expressions import Expression, display, string
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import GONE
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.fields.keeping_decorators import keeping_decorators
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.source.classes import ClassInfo, is_declared_only
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import callee_of, each, names_in, walk

RULE = "class-decorator"
_HARMLESS = frozenset({"typing.final", "typing_extensions.final", "typing.runtime_checkable"})
_CONSTRUCTION = frozenset(
    {"__init__", "__post_init__", "__new__", "__dataclass_fields__", "fields"}
)
_ONLY_LOOK = frozenset({"isinstance", "issubclass", "hasattr", "repr", "str", "print", "id"})
_DATACLASS_MAKERS = frozenset({"dataclass", "kw_only_dataclass", "make_dataclass"})


def adapted_decorators(
    project: Project, cls: ClassInfo, sizes: Sequence[str], remarks: Remarks
) -> Edits:
    """Edits of the decorators that look at the constructor.

    Args:
      sizes: constructor parameters that the class gains.

    Raises:
      Refused: nobody knows what a decorator does with the class.
    """
    edits: Edits = {}
    keeping = keeping_decorators(project, cls)
    for node in cls.node.decorator_list:
        target = callee_of(node)
        symbol = project.resolve(target, cls.scope)
        if symbol in DATACLASS or symbol in _HARMLESS or node in keeping:
            continue
        function = project.function(symbol)
        if function is None or _names(function) & _DATACLASS_MAKERS:
            raise ClassRefused(
                node,
                f"what the class decorator {ast.unparse(target)} does with the class is not known",
                "apply what it does by hand, or remove it",
                RULE,
            )
        if _names(function) & _CONSTRUCTION or _hands_on(function):
            remarks.imports.add("nnm")
            remarks.review.append((node, "the decorator is given the fields alone: check it"))
            edits[id(node)] = _adapt(node, sizes)
    return edits


def _names(function: ast.FunctionDef) -> set[str]:
    names = names_in(function)
    return names | {one.attr for one in each(function, ast.Attribute)}


def _hands_on(function: ast.FunctionDef) -> bool:
    """Whether the function gives one of its arguments, perhaps the class, to another function."""
    parameters = {one.arg for one in each(function, ast.arg)}
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in _ONLY_LOOK:
                continue
            case ast.Call(args=args, keywords=keywords):
                values = [*args, *(one.value for one in keywords)]
                if any(isinstance(one, ast.Name) and one.id in parameters for one in values):
                    return True
    return False


def _adapt(node: ast.expr, sizes: Sequence[str]) -> Callable[[Renderer], Expression]:
    def make(renderer: Renderer) -> Expression:
        added = [named("sizes", display(map(string, sizes)))] if sizes else []
        return call("nnm.class_decorator", renderer.inner(node), *added)

    return make


# ---- what NNX does without: Linen's decorators, dataclass decorators, field statements

_METHOD_DECORATORS = frozenset({"flax.linen.compact", "flax.linen.nowrap"})
DATACLASS = frozenset({"dataclasses.dataclass", "flax.struct.dataclass"})


def removed_decorators(project: Project, cls: ClassInfo) -> Iterator[ast.expr]:
    """Decorators of methods that go."""
    for method in cls.methods.values():
        for one in method.decorator_list:
            if project.resolve(one, cls.scope) in _METHOD_DECORATORS:
                yield one


def removals(project: Project, cls: ClassInfo) -> Edits:
    """Edits that take everything away that NNX does without."""
    edits: Edits = {id(one): GONE for one in removed_decorators(project, cls)}
    for one in cls.node.decorator_list:
        target = callee_of(one)
        if project.resolve(target, cls.scope) in DATACLASS:
            edits[id(one)] = GONE
    for statement in cls.node.body:
        if not isinstance(statement, ast.AnnAssign) or not _is_field(cls, statement):
            continue
        if not _replaces_method(cls, statement):
            edits[id(statement)] = GONE
    return edits


def _replaces_method(cls: ClassInfo, node: ast.AnnAssign) -> bool:
    """Whether a field stands for a method of a base, perhaps an abstract one: its default stays.

    Raises:
      Refused: the class has no attribute to put in the method's place.
    """
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    if not any(name in one.methods for one in cls.mro[1:]):
        return False
    if not isinstance(node.value, ast.Constant):
        reason = f"the field {name!r} stands for a method of a base, and has no plain default"
        raise ClassRefused(node, reason, "give one of them another name", "fields")
    return True


def _is_field(cls: ClassInfo, node: ast.AnnAssign) -> bool:
    if any(one.node is node for one in cls.fields):
        return True
    return ast.unparse(node.annotation).endswith("KW_ONLY") or is_declared_only(node)
