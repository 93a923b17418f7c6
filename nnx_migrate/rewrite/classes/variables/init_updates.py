"""Updates that Linen's ``init`` runs as every call does: their class asks nowhere whether it is running.

Linen's ``init`` runs the whole call, ``state.value = ...`` included. The constructor runs none of it:
``nnm.lazy_init(model, *inputs)`` and call sites of ``init`` do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from nnx_migrate.rewrite.classes.items import (
    Item,
    ItemKind,
    is_variable,
    own_nodes,
    receiver_of,
    self_call,
)
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk

# What tells ``init`` from later calls: an update may hang on any of them, wherever it is asked.
_ASKS = frozenset({"is_initializing", "is_mutable_collection", "has_variable", "has_rng", "scope"})


def updates_by_variable(cls: ClassInfo, items: Mapping[int, Item]) -> dict[int, frozenset[int]]:
    """Ids of the statements of :func:`init_updates` by id of the call that made the variable."""
    found: dict[int, frozenset[int]] = {}
    for key, statement in init_updates(cls, items):
        found[key] = found.get(key, frozenset()) | {id(statement)}
    return found


def init_updates(cls: ClassInfo, items: Mapping[int, Item]) -> Iterator[tuple[int, ast.stmt]]:
    """Updates that ``init`` runs as every call does, with the id of the call that made the variable."""
    if any(_asks(one) for owner in cls.mro for one in owner.methods.values()):
        return
    variables = _variable_attributes(cls, items)
    for method in cls.methods.values():
        receiver = receiver_of(method)
        local = _local(method, items)
        for node in own_nodes(method):
            match node:
                case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
                    for key in _updates(target, receiver, local, variables):
                        yield key, node
                case ast.Expr(value=ast.Call() as call) if (
                    self_call(call, receiver) == "put_variable"
                ):
                    for key in _put(call, items):
                        yield key, node


def _asks(method: ast.FunctionDef) -> bool:
    always = {id(one.func) for one in walk(method) if _is_always_mutable(one)}
    return any(
        isinstance(one, ast.Attribute) and one.attr in _ASKS and id(one) not in always
        for one in walk(method)
    )


def _is_always_mutable(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether ``node`` asks for a collection that ``init`` may change, as later calls may."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="is_mutable_collection"), args=[ast.Constant(value=name)]
        ):
            return name not in ("params", "intermediates")
    return False


Names = Mapping[str, list[int]]


def _put(call: ast.Call, items: Mapping[int, Item]) -> Iterator[int]:
    """The variables that ``self.put_variable(col, name, value)`` may set."""
    arguments = [one.value if isinstance(one, ast.Constant) else None for one in call.args[:2]]
    for key, item in items.items():
        if item.kind is ItemKind.VARIABLE:
            known = [
                one.value if isinstance(one, ast.Constant) else None
                for one in (item.collection, item.name)
            ]
            if all(
                a is None or b is None or a == b for a, b in zip(arguments, known, strict=False)
            ):
                yield key


def _variable_attributes(cls: ClassInfo, items: Mapping[int, Item]) -> Names:
    """Attributes that ``setup`` gives variables."""
    found: dict[str, list[int]] = {}
    setup = cls.methods.get("setup")
    for node in walk(setup) if setup is not None else ():
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=name), attr=attr)], value=value
            ) if name == receiver_of(setup) and is_variable(value, items):  # type: ignore[arg-type]
                found.setdefault(attr, []).append(id(value))
    return found


def _local(method: ast.FunctionDef, items: Mapping[int, Item]) -> Names:
    found: dict[str, list[int]] = {}
    for node in own_nodes(method):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_variable(value, items):
                found.setdefault(name, []).append(id(value))
    return found


def _updates(target: ast.expr, receiver: str, local: Names, variables: Names) -> list[int]:
    match target:
        case ast.Attribute(value=ast.Name(id=name), attr="value"):
            return local.get(name, [])
        case ast.Attribute(
            value=ast.Attribute(value=ast.Name(id=name), attr=attr), attr="value"
        ) if name == receiver:
            return variables.get(attr, [])
        case _:
            return []
