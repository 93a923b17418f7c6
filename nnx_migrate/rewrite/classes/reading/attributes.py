"""What the attributes that ``setup`` assigns hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS, contains
from nnx_migrate.source.classes import ClassInfo

RULE = "setup"


class Kind(StrEnum):
    """What an attribute holds."""

    SUBMODULE = "submodule"
    STRUCTURE = "structure"  # a list, tuple or dict of submodules
    PARAM = "param"
    VARIABLE = "variable"
    ALIAS = "alias"  # another name of a submodule the class holds already
    COMPUTED = "computed"  # follows a parameter or variable: a property computes it
    PLAIN = "plain"


@dataclass(frozen=True)
class Attribute:
    """One assignment ``self.<name> = ...`` of ``setup``."""

    name: str
    kind: Kind
    statement: ast.stmt
    target: ast.Attribute
    value: ast.expr
    stored: str | None = None  # attribute that really holds it, where Linen's path differs


def setup_attributes(
    cls: ClassInfo, method: ast.FunctionDef, items: Mapping[int, Item]
) -> list[Attribute]:
    """Assignments to attributes in ``method``, in source order."""
    receiver = receiver_of(method)
    held: dict[str, Kind] = {}
    found: list[Attribute] = []
    local: dict[str, Kind] = {}
    for statement in statements(method.body):
        for target, value in _assignments(statement):
            kind, stored = _kind(value, items, held, local, receiver)
            match target:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                    held[attr] = kind
                    stored = None if stored == attr else stored
                    found.append(Attribute(attr, kind, statement, target, value, stored))
                case ast.Name(id=name):
                    local[name] = _stronger(local.get(name), kind)
        _note_mutation(statement, items, local)
    return found


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements and those in blocks inside, in source order; not those of local functions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, field, []))
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from statements(part.body)


def _assignments(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if (
                    isinstance(target, ast.Tuple | ast.List)
                    and isinstance(value, ast.Tuple | ast.List)
                    and len(target.elts) == len(value.elts)
                ):
                    yield from zip(target.elts, value.elts, strict=True)
                else:
                    yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.AugAssign(target=ast.Attribute() as target, op=ast.Add(), value=value):
            yield target, value


def _note_mutation(statement: ast.stmt, items: Mapping[int, Item], local: dict[str, Kind]) -> None:
    """``layers.append(nn.Dense(3))`` makes ``layers`` a structure; so does ``d[k] = ...``."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=args)):
            if any(_holds(one, items, local) for one in args):
                local[name] = Kind.STRUCTURE
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value):
            if _holds(value, items, local):
                local[name] = Kind.STRUCTURE
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            if _holds(value, items, local):
                local[name] = Kind.STRUCTURE


def _holds(node: ast.expr, items: Mapping[int, Item], local: Mapping[str, Kind]) -> bool:
    if isinstance(node, ast.Name) and local.get(node.id, Kind.PLAIN) is not Kind.PLAIN:
        return True
    return contains(node, items)


def _stronger(first: Kind | None, second: Kind) -> Kind:
    if first is Kind.STRUCTURE:
        return first
    return second


def _kind(
    value: ast.expr,
    items: Mapping[int, Item],
    held: Mapping[str, Kind],
    local: Mapping[str, Kind],
    receiver: str,
    *,
    computed: bool = False,
) -> tuple[Kind, str | None]:
    """Kind of a value, and its literal name; ``computed`` allows names that are not literal."""
    item = items.get(id(value))
    if item is not None:
        return _item_kind(item, computed=computed)
    match value:
        case ast.Name(id=name):
            return local.get(name, Kind.PLAIN), None
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
            known = held.get(attr)
            return (Kind.ALIAS if known and known is not Kind.PLAIN else Kind.PLAIN), None
        case ast.IfExp(body=body, orelse=orelse):
            first, _ = _kind(body, items, held, local, receiver)
            second, _ = _kind(orelse, items, held, local, receiver)
            return (first if first is not Kind.PLAIN else second), None
        case ast.List() | ast.Tuple() | ast.Dict():
            inside = any(
                _is_module(one, items, held, local, receiver) for one in ast.iter_child_nodes(value)
            )
            return (Kind.STRUCTURE if inside else Kind.PLAIN), None
        case ast.BinOp(left=left, right=right):
            kinds = {
                _kind(one, items, held, local, receiver, computed=True)[0] for one in (left, right)
            }
            return (Kind.STRUCTURE if Kind.STRUCTURE in kinds else Kind.PLAIN), None
        case ast.Call(func=ast.Name(id="list" | "tuple" | "dict"), args=[inner]):
            kind, _ = _kind(inner, items, held, local, receiver)
            return kind, None
    if isinstance(value, COMPREHENSIONS) and contains(value, items):
        return Kind.STRUCTURE, None
    return (Kind.SUBMODULE if contains(value, items) else Kind.PLAIN), None


def _is_module(
    node: ast.AST,
    items: Mapping[int, Item],
    held: Mapping[str, Kind],
    local: Mapping[str, Kind],
    receiver: str,
) -> bool:
    return isinstance(node, ast.expr) and (
        _kind(node, items, held, local, receiver, computed=True)[0] is not Kind.PLAIN
    )


def _item_kind(item: Item, *, computed: bool) -> tuple[Kind, str | None]:
    literal = None
    if isinstance(item.name, ast.Constant) and isinstance(item.name.value, str):
        literal = item.name.value
    match item.kind:
        case ItemKind.SITE:
            if item.name is not None and literal is None and not computed:
                raise Refused(
                    item.call,
                    "the name of an attribute's submodule is computed",
                    "write the name as a string, or assign it under its own name",
                    RULE,
                )
            return Kind.SUBMODULE, literal
        case ItemKind.PARAM | ItemKind.VARIABLE:
            if literal is None:
                raise Refused(item.call, "its name is computed", "write it as a string", RULE)
            return (Kind.PARAM if item.kind is ItemKind.PARAM else Kind.VARIABLE), literal
        case _:
            return Kind.PLAIN, None
