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
from nnx_migrate.source.walking import each, walk

RULE = "compact"
_ADDS = frozenset({"append", "extend", "insert"})  # methods that only change the list


def refuse_perhaps_called(
    method: ast.FunctionDef, items: Mapping[int, Item], wrappers: Collection[int] = ()
) -> None:
    """Nothing, unless a named submodule may stay without a call.

    Args:
      wrappers: ids of calls that build modules without variables of their own, around others.

    Raises:
      Refused: its parameters would depend on the path that Linen's ``init`` takes.
    """
    read = {one.id for one in each(method, ast.Name) if isinstance(one.ctx, ast.Load)}
    for later, names, item, key in _named(method.body, _Held(items, wrappers, {}), ()):
        name = names[0]
        wanted = [_Wanted(_readers(method, one), key if one == name else None) for one in names]
        if name in read and not any(_surely_read(later, one) for one in wanted):
            raise Refused(
                item.call,
                f"{name!r} is called only under a condition, and Linen makes its parameters there",
                "build it under the same condition",
                RULE,
            )


Later = tuple[Sequence[ast.stmt], ...]  # what runs next, block by block
_Key = int | str | None  # of one item of a list or dict that is written out


@dataclass(frozen=True)
class _Wanted:
    """What a read must name: one of ``names``, and where it is by a literal key, that of the item."""

    names: frozenset[str]
    key: tuple[_Key, _Key] | None = None  # from the front, and from the end


def _readers(method: ast.FunctionDef, name: str) -> frozenset[str]:
    """The name, and those of local functions that read it, at any remove: they may run or not."""
    functions = [one for one in walk(method) if _named_function(one) and one is not method]
    found = {name}
    while True:
        more = {
            _named_function(one)
            for one in functions
            for node in each(one, ast.Name)
            if node.id in found and isinstance(node.ctx, ast.Load)
        }
        if more <= found:
            return frozenset(found)
        found |= more


def _named_function(node: ast.AST) -> str:
    """The name of a local function or of a lambda that is bound to one; "" for anything else."""
    match node:
        case ast.FunctionDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            return name
    return ""


def _named(
    body: Sequence[ast.stmt], held: _Held, after: Later
) -> Iterator[tuple[Later, tuple[str, ...], Item, tuple[_Key, _Key] | None]]:
    """Each submodule that has variables and is bound to a name, with what runs after that.

    The names are the one that is bound, and those that the value holds it by; of the items of a list
    or dict that is written out, each has its keys.
    """
    for index, statement in enumerate(body):
        later = (body[index + 1 :], *after)
        for name, value in _bound(statement):
            found = list(held.by(value))
            held.known.pop(name, None)
            if found:
                held.known[name] = found[0][0]
                yield later, (name, *(one for _, one in found if one)), found[0][0], None
            for key, part in _entries(value):
                for item, inner in held.by(part):
                    yield later, (name, *([inner] if inner else [])), item, key
        for block in _blocks(statement):
            inside = replace(held, known={**held.known})
            yield from _named(block, inside, later)
            held.known.update(inside.known)


def _entries(value: ast.expr) -> Iterator[tuple[tuple[_Key, _Key], ast.expr]]:
    """The items of a list or dict that is written out, each with its keys."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            if not any(isinstance(one, ast.Starred) for one in parts):
                yield from (((i, i - len(parts)), one) for i, one in enumerate(parts))
        case ast.Dict(keys=keys, values=parts):
            for key, one in zip(keys, parts, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, int | str):
                    yield (key.value, key.value), one


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
            case (
                ast.ListComp(elt=one)
                | ast.GeneratorExp(elt=one)
                | ast.DictComp(value=one)
                | ast.Starred(value=one)
            ):
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
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=args)
        ):
            if attr in _ADDS:
                yield from ((name, value) for value in args)


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block


def _surely_read(later: Later, wanted: _Wanted) -> bool:
    for block in later:
        found = _block(block, wanted)
        if found is not None:
            return found
    return False


def _block(body: Sequence[ast.stmt], wanted: _Wanted) -> bool | None:
    """Whether the name is read on every path (True), not on one that leaves (False), or not yet."""
    for statement in body:
        found = _statement(statement, wanted)
        if found is not None:
            return found
    return None


def _statement(statement: ast.stmt, wanted: _Wanted) -> bool | None:
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            if _reads(test, wanted):
                return True
            ways = (_block(body, wanted), _block(orelse, wanted))
            return False if False in ways else True if ways == (True, True) else None
        case ast.For(iter=head, body=body):
            return True if _reads(head, wanted) else _block(body, wanted)
        case ast.While(test=test):
            return True if _reads(test, wanted) else None
        case ast.With(items=managers, body=body):
            return True if any(_reads(one, wanted) for one in managers) else _block(body, wanted)
        case ast.Try(body=body):
            return _block(body, wanted)
        case ast.Match():
            return None
        case ast.Raise():
            return True
        case ast.Return():
            return _reads(statement, wanted)
        case ast.Break() | ast.Continue():
            return False
        case ast.FunctionDef() | ast.Assign(value=ast.Lambda()):
            return None
    if _reads(statement, wanted):
        return True
    stores = (one for one in each(statement, ast.Name) if one.id in wanted.names)
    return False if any(isinstance(one.ctx, ast.Store | ast.Del) for one in stores) else None


def _reads(node: ast.AST, wanted: _Wanted) -> bool:
    """Whether evaluating the node surely reads the name; a function that reads it is taken to run."""
    match node:
        case ast.Subscript(value=ast.Name(id=found), slice=index) if found in wanted.names:
            key = _literal(index)
            return wanted.key is None or key is None or key in wanted.key
        case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=attr), args=args) if (
            found in wanted.names and attr in _ADDS
        ):
            return any(_reads(one, wanted) for one in args)
        case ast.Name(id=found, ctx=ast.Load()):
            return found in wanted.names
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _reads(test, wanted) or (_reads(body, wanted) and _reads(orelse, wanted))
        case ast.BoolOp(values=[first, *_]):
            return _reads(first, wanted)
    return any(_reads(one, wanted) for one in ast.iter_child_nodes(node))


def _literal(index: ast.expr) -> _Key:
    """The key that an index writes out; None for any other."""
    try:
        value = ast.literal_eval(index)
    except ValueError:
        return None
    return value if isinstance(value, int | str) else None
