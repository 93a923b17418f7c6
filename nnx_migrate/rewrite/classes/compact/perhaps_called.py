"""Submodules of a compact method that are built in one place and perhaps called in another.

``layer = Block()`` makes no parameters in Linen; the first call does (flax 0.12.8, linen/module.py). Where
that call stands under a condition, or after a possible return, ``__init__`` would make parameters that Linen
does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind

RULE = "compact"


def refuse_perhaps_called(
    method: ast.FunctionDef, items: Mapping[int, Item], wrappers: Collection[int] = ()
) -> None:
    """Nothing, unless a named submodule may stay without a call.

    Args:
      wrappers: ids of calls that build modules without variables of their own, around others.

    Raises:
      Refused: its parameters would depend on the path that Linen's ``init`` takes.
    """
    read = {
        one.id
        for one in ast.walk(method)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }
    for later, names, item in _named(method.body, _Held(items, wrappers, {}), ()):
        name = names[0]
        if name in read and not any(_surely_read(later, one) for one in names):
            raise Refused(
                item.call,
                f"{name!r} is called only under a condition, and Linen makes its parameters there",
                "build it under the same condition",
                RULE,
            )


Later = tuple[Sequence[ast.stmt], ...]  # what runs next, block by block


def _named(
    body: Sequence[ast.stmt], held: _Held, after: Later
) -> Iterator[tuple[Later, tuple[str, ...], Item]]:
    """Each submodule that has variables and is bound to a name, with what runs after that.

    The names are the one that is bound, and those that the value holds it by.
    """
    for index, statement in enumerate(body):
        later = (body[index + 1 :], *after)
        for name, value in _bound(statement):
            found = list(held.by(value))
            held.known.pop(name, None)
            if found:
                held.known[name] = found[0][0]
                yield later, (name, *(one for _, one in found if one)), found[0][0]
        for block in _blocks(statement):
            yield from _named(block, replace(held, known={**held.known}), later)


@dataclass(frozen=True)
class _Held:
    """Finds the submodules that a value holds, itself or in a container or another module.

    Attributes:
      wrappers: ids of calls that build modules without variables of their own.
      known: names that hold one now.
    """

    items: Mapping[int, Item]
    wrappers: Collection[int]
    known: dict[str, Item]

    def by(self, value: ast.expr) -> Iterator[tuple[Item, str | None]]:
        """The submodules, each with the name it is held by."""
        item = self.items.get(id(value))
        match value:
            case ast.Call() if item is not None and _is_layer(item):
                yield item, None
            case ast.Name(id=name) if name in self.known:
                yield self.known[name], name
            case _:
                for part in self._parts(value):
                    yield from self.by(part)

    def _parts(self, value: ast.expr) -> Sequence[ast.expr]:
        match value:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
                return parts
            case ast.ListComp(elt=one) | ast.DictComp(value=one) | ast.Starred(value=one):
                return [one]
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
                return [one, other]
            case ast.Call(args=args, keywords=more) if id(value) in self.wrappers or _collects(
                value
            ):
                return [*args, *(one.value for one in more)]
        return []


def _collects(call: ast.Call) -> bool:
    """Whether a call makes a container of what it is given."""
    return isinstance(call.func, ast.Name) and call.func.id in ("list", "tuple", "dict", "reversed")


def _is_layer(item: Item) -> bool:
    """Whether the value is a submodule with variables; a function that builds returns what it computes."""
    return item.kind is ItemKind.SITE and not item.is_in_scope and not item.free_of_variables


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            for one, value in zip(names, values, strict=False):
                if isinstance(one, ast.Name):
                    yield one.id, value


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block


def _surely_read(later: Later, name: str) -> bool:
    for block in later:
        found = _block(block, name)
        if found is not None:
            return found
    return False


def _block(body: Sequence[ast.stmt], name: str) -> bool | None:
    """Whether the name is read on every path (True), not on one that leaves (False), or not yet."""
    for statement in body:
        found = _statement(statement, name)
        if found is not None:
            return found
    return None


def _statement(statement: ast.stmt, name: str) -> bool | None:
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            if _reads(test, name):
                return True
            ways = (_block(body, name), _block(orelse, name))
            return False if False in ways else True if ways == (True, True) else None
        case ast.For(iter=head, body=body):
            return True if _reads(head, name) else _block(body, name)
        case ast.While(test=test):
            return True if _reads(test, name) else None
        case ast.With(items=managers, body=body):
            return True if any(_reads(one, name) for one in managers) else _block(body, name)
        case ast.Try(body=body):
            return _block(body, name)
        case ast.Match():
            return None
        case ast.Raise():
            return True
        case ast.Return():
            return _reads(statement, name)
        case ast.Break() | ast.Continue():
            return False
    if _reads(statement, name):
        return True
    stores = (one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name)
    return False if any(isinstance(one.ctx, ast.Store | ast.Del) for one in stores) else None


def _reads(node: ast.AST, name: str) -> bool:
    """Whether evaluating the node surely reads the name; a function that reads it is taken to run."""
    match node:
        case ast.Name(id=found, ctx=ast.Load()):
            return found == name
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _reads(test, name) or (_reads(body, name) and _reads(orelse, name))
        case ast.BoolOp(values=[first, *_]):
            return _reads(first, name)
    return any(_reads(one, name) for one in ast.iter_child_nodes(node))
