"""Values an expression may have, and what is known of them without looking at the project."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from nnx_migrate.ledger.externals import BRIDGE_MODULES, NOT_FLAX, TO_LINEN, TO_NNX
from nnx_migrate.ledger.resolve import (
    LINEN,
    UNKNOWN,
    Definition,
    ModuleValue,
    Symbol,
    Unknown,
    under,
)
from nnx_migrate.ledger.scope_data import Scope


@dataclass(frozen=True)
class Instance:
    """An instance of a class, or the result of calling something outside the project.

    ``is_annotated``: an annotation says so, and the value may be the class's lazy form as well.
    """

    of: Symbol | Definition
    is_annotated: bool = False


@dataclass(frozen=True)
class Returning:
    """A method whose result is the instance it was taken from (``bind``, ``clone``, ``copy``)."""

    value: Instance


@dataclass(frozen=True)
class NoModule:
    """A literal, or anything else that is no module."""


Value = Symbol | ModuleValue | Definition | Unknown | Instance | Returning | NoModule
Values = frozenset[Value]
ANY: Values = frozenset({UNKNOWN})
NO: Values = frozenset({NoModule()})


def symbol_state(name: str) -> str:
    """``linen``, ``nnx``, ``maybe`` or ``other`` for a class outside the project."""
    if name in TO_LINEN:
        return "linen"
    if under(name, LINEN):
        # Functions of Linen and protocols of initialisers are no classes of modules.
        is_class = name.rpartition(".")[2][:1].isupper()
        return "linen" if is_class and not under(name, f"{LINEN}.initializers") else "other"
    if name in BRIDGE_MODULES:
        return "other"
    if under(name, "flax.nnx"):
        return "nnx"
    return "other" if under(name, "flax") or never_module(name) else "maybe"


def lacks_method(name: str, method: str) -> bool:
    """Whether an NNX class of Flax lacks a Linen method; ``ToNNX`` has a ``lazy_init``."""
    return not (name in TO_NNX and method == "lazy_init")


def never_module(name: str) -> bool:
    """Whether a symbol surely is no Linen module and makes none."""
    top = name.partition(".")[0]
    return top in NOT_FLAX or top in ("builtins", "typing", "typing_extensions")


def instance_of(value: Value) -> Values:
    """An instance of an annotated type."""
    if isinstance(value, Symbol):
        top, _, last = value.name.rpartition(".")
        if top in ("typing", "typing_extensions", "collections.abc"):
            known = {"Sequence", "List", "Dict", "Tuple", "Mapping", "Iterable", "Set", "Text"}
            return NO if last in known else ANY
        if value.name in ("builtins.object", "builtins.type"):
            return ANY
        return frozenset({Instance(value)})
    if isinstance(value, Definition) and value.scope.kind == "class":
        return frozenset({Instance(value, is_annotated=True)})
    return ANY


def class_of(value: Value) -> Values:
    """The class of an instance."""
    return frozenset({value.of}) if isinstance(value, Instance) else ANY


def item_of(owner: Value) -> Values:
    """An item of a value: of what no Linen module can be inside of, no module."""
    if isinstance(owner, Instance) and isinstance(owner.of, Symbol):
        top = owner.of.name.partition(".")[0]
        return NO if top in NOT_FLAX and top not in ("collections", "queue", "pickle") else ANY
    return ANY


def options(parts: Iterable[Values]) -> Values:
    """The alternatives of an optional or a union, without ``None``."""
    return (union(parts) - NO) or NO


def union(parts: Iterable[Values]) -> Values:
    """Every value of every part."""
    return frozenset(value for part in parts for value in part)


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c``; empty for anything but a name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def method_owner(node: ast.arg, scope: Scope) -> tuple[Scope, bool] | None:
    """The class whose method takes this as its first parameter, and whether it is the class."""
    if scope.kind != "class":
        return None
    for bindings in scope.bindings.values():
        for binding in bindings:
            inner = binding.inner
            if inner is None or not isinstance(inner.node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            spec = inner.node.args
            if [*spec.posonlyargs, *spec.args][:1] == [node]:
                names = {last_name(one) for one in inner.node.decorator_list}
                if "staticmethod" in names:
                    return None
                return scope, "classmethod" in names
    return None
