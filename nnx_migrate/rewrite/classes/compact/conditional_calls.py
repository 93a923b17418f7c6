"""Submodules of a compact method that are built in one place and perhaps called in another.

``layer = Block()`` makes no parameters in Linen; the first call does (flax 0.12.8, linen/module.py). Where
that call stands under a condition, or after a possible return, ``__init__`` would make parameters that Linen
does not have: its first call makes them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nnx_migrate.rewrite.classes.compact.holding import ADDS, Names, SubmoduleFinder, called_names
from nnx_migrate.rewrite.classes.data import ClassRefused, Wants
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.source.bindings import loop_pairs
from nnx_migrate.source.growth import grown
from nnx_migrate.source.leaving import leaves
from nnx_migrate.source.walking import each, has_starred, names_read, walk

RULE = "compact"


def check_calls(
    method: ast.FunctionDef, items: Mapping[int, Item], wrappers: Collection[int]
) -> None:
    """Refuse named submodules that may stay without a call, if they are not left to their first calls.

    Args:
      wrappers: ids of calls that build modules without variables of their own, around others.

    Raises:
      Refused: parameters would depend on the path that Linen's ``init`` takes.
    """
    read = names_read(method)
    finder = SubmoduleFinder(items, wrappers, {}, called_names(method))
    for later, names, item, key in _named(method.body, finder, ()):
        name = names[0]
        searches = [_Search(_readers(method, one), key if one == name else None) for one in names]
        is_sure = item.may_stay_uncalled or any(_surely_read(later, one) for one in searches)
        if not read.isdisjoint(names) and not is_sure:
            raise ClassRefused(
                item.call,
                f"{name!r} is called only under a condition, and Linen makes its parameters there",
                "build it under the same condition",
                RULE,
                Wants(lazy=frozenset({id(item.call)})),
            )


Later = tuple[Sequence[ast.stmt], ...]  # what runs next, block by block
_Key = int | str | None  # of one item of a list or dict that is written out
_Keys = tuple[_Key, _Key] | None  # from the front, and from the end; None for any
_ATTRIBUTE: _Keys = (None, None)  # of one of an object's attributes


@dataclass(frozen=True)
class _Search:
    """What a read must name: one of ``names``, and where it is by a literal key, that of the item.

    Of an object that a call was given several for, no read of an attribute tells which.
    """

    names: frozenset[str]
    key: _Keys = None


def _readers(method: ast.FunctionDef, name: str) -> frozenset[str]:
    """The name, and those of local functions that surely read it when they run, at any remove."""
    functions = [one for one in walk(method) if _named_function(one) and one is not method]
    return grown(
        [name],
        lambda names: (_named_function(one) for one in functions if _runs(one, _Search(names))),
    )


def _runs(function: ast.AST, search: _Search) -> bool:
    """Whether each run of a local function reads the name."""
    match function:
        case ast.FunctionDef(body=body):
            return _block(body, search) is True
        case ast.Assign(value=ast.Lambda(body=body)):
            return _reads(body, search)
    return False


def _named_function(node: ast.AST) -> str:
    """The name of a local function or of a lambda that is bound to one; "" for anything else."""
    match node:
        case ast.FunctionDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            return name
    return ""


def _named(
    body: Sequence[ast.stmt], finder: SubmoduleFinder, after: Later
) -> Iterator[tuple[Later, Names, Item, _Keys]]:
    """Each submodule that has variables and is bound to a name, with what runs after that.

    The names are those that are bound, and those that the value holds it by; of the items of a list
    or dict that is written out, each has its keys.
    """
    for index, statement in enumerate(body):
        later = (body[index + 1 :], *after)
        for names, value in _bound(statement):
            found = list(finder.by(value, names))
            together = _ATTRIBUTE if len(found) > 1 and finder.is_unknown(value) else None
            for name in names if isinstance(statement, ast.Assign | ast.AnnAssign) else ():
                finder.bindings.pop(name, None)
            if found and names:
                finder.bindings.update(dict.fromkeys(names, found[0][0]))
                yield later, (*names, *(one for _, one in found if one)), found[0][0], together
            for key, part in _entries(value) if names else ():
                for item, inner in finder.by(part, names):
                    yield later, (*names, *([inner] if inner else [])), item, key
        if isinstance(statement, ast.For):
            yield from _in_rounds(statement, finder)
        for block in _blocks(statement):
            inside = replace(finder, bindings={**finder.bindings})
            yield from _named(block, inside, later)
            finder.bindings.update(inside.bindings)


def _in_rounds(
    loop: ast.For, finder: SubmoduleFinder
) -> Iterator[tuple[Later, Names, Item, _Keys]]:
    """The submodules that a loop goes through: each round has to call its own, and there has to be one."""
    body: Later = () if leaves(loop.body) else (loop.body,)
    for names, items in _rounds(loop.target, loop.iter):
        for item, _ in finder.by(items, names) if names else ():
            yield body, names, item, None


def _entries(value: ast.expr) -> Iterator[tuple[tuple[_Key, _Key], ast.expr]]:
    """The items of a list or dict that is written out, each with its keys."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            if not has_starred(parts):
                yield from (((i, i - len(parts)), one) for i, one in enumerate(parts))
        case ast.Dict(keys=keys, values=parts):
            for key, one in zip(keys, parts, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, int | str):
                    yield (key.value, key.value), one


def _bound(statement: ast.stmt) -> Iterator[tuple[Names, ast.expr]]:
    """Names that a statement binds, several where any may be what the value holds, with the value."""
    match statement:
        case ast.Assign(targets=[target], value=value):
            yield from _pairs(target, value)
        case ast.Assign(targets=targets, value=value):
            yield tuple(name for one in targets for name in _targets(one)), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _pairs(target, value)
        case ast.AugAssign(target=target, value=value):
            yield _targets(target), value
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args)):
            for one in args:
                if attr in ADDS or not isinstance(one, ast.Name):
                    yield _targets(owner), one


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[Names, ast.expr]]:
    """Targets with their parts of the value, where both are written out."""
    match target, value:
        case (
            (ast.Tuple(elts=targets) | ast.List(elts=targets)),
            (ast.Tuple(elts=values) | ast.List(elts=values)),
        ) if len(targets) == len(values) and not has_starred((*targets, *values)):
            for one, part in zip(targets, values, strict=True):
                yield from _pairs(one, part)
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), ast.Name()):
            yield from ((_targets(one), value) for one in targets)  # each has others of them
        case _:
            yield _targets(target), value


def _rounds(target: ast.expr, value: ast.expr) -> Iterator[tuple[Names, ast.expr]]:
    """Names that a loop binds with what they are items of."""
    yield from ((_targets(one), items) for one, items in loop_pairs(target, value))


def _targets(target: ast.expr) -> Names:
    """The names that a target binds or changes."""
    match target:
        case ast.Name(id=name):
            return (name,)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(name for one in parts for name in _targets(one))
        case ast.Starred(value=one) | ast.Attribute(value=one) | ast.Subscript(value=one):
            return _targets(one)
    return ()


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block


def _surely_read(later: Later, search: _Search) -> bool:
    for block in later:
        found = _block(block, search)
        if found is not None:
            return found
    return False


def _block(body: Sequence[ast.stmt], search: _Search) -> bool | None:
    """Whether the name is read on every path (True), not on one that leaves (False), or not yet."""
    for statement in body:
        found = _statement(statement, search)
        if found is not None:
            return found
    return None


def _statement(statement: ast.stmt, search: _Search) -> bool | None:
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            if _reads(test, search):
                return True
            ways = (_block(body, search), _block(orelse, search))
            return False if False in ways else True if ways == (True, True) else None
        case ast.For(target=target, iter=head, body=body):
            if _reads(head, search):
                return True
            return False if _rebinds(target, search) else _block(body, search)
        case ast.With(items=managers, body=body):
            return True if any(_reads(one, search) for one in managers) else _block(body, search)
        case ast.Match():
            return None
        case ast.Raise():
            return True
        case ast.Return():
            return _reads(statement, search)
        case ast.Break() | ast.Continue():
            return False
        case ast.FunctionDef() | ast.Assign(value=ast.Lambda()):
            return None
    if _reads(statement, search):
        return True
    stores = (one for one in each(statement, ast.Name) if one.id in search.names)
    return False if any(isinstance(one.ctx, ast.Store | ast.Del) for one in stores) else None


def _reads(node: ast.AST, search: _Search) -> bool:
    """Whether evaluating the node surely reads the name; a function that reads it is taken to run."""
    match node:
        case ast.Subscript(value=ast.Name(id=found), slice=ast.Slice() as part) if (
            found in search.names
        ):
            return search.key is None or _is_in(part, search.key)
        case ast.Subscript(value=ast.Name(id=found), slice=index) if found in search.names:
            key = _literal(index)
            return search.key is None or key is None or key in search.key
        case ast.Attribute(value=ast.Name(id=found)) if found in search.names:
            return search.key is not _ATTRIBUTE
        case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=attr), args=args) if (
            found in search.names and attr in ADDS
        ):
            return any(_reads(one, search) for one in args)
        case ast.Name(id=found, ctx=ast.Load()):
            return found in search.names
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _reads(test, search) or (_reads(body, search) and _reads(orelse, search))
        case ast.BoolOp(values=[first, *_]):
            return _reads(first, search)
        case (
            ast.ListComp(generators=loops)
            | ast.SetComp(generators=loops)
            | ast.GeneratorExp(generators=loops)
            | ast.DictComp(generators=loops)
        ):
            if any(one.ifs for one in loops):
                return False
            if any(_rebinds(one.target, search) for one in loops):
                return _reads(loops[0].iter, search)
    return any(_reads(one, search) for one in ast.iter_child_nodes(node))


def _rebinds(target: ast.expr, search: _Search) -> bool:
    """Whether a loop gives the name to something else: ``for layer in layers``."""
    return any(one.id in search.names for one in each(target, ast.Name))


def _is_in(part: ast.Slice, key: tuple[_Key, _Key]) -> bool:
    """Whether a part of a list that is written out has one of its items, given by its keys."""
    ends = (part.lower, part.upper, part.step)
    bounds = [None if one is None else _literal(one) for one in ends]
    low, high, step = (one if isinstance(one, int) else None for one in bounds)
    is_written = all(isinstance(one, int) for one, end in zip(bounds, ends, strict=True) if end)
    match key:
        case (int(front), int(back)) if is_written:
            return front in range(front - back)[low:high:step]
    return False


def _literal(index: ast.expr) -> _Key:
    """The key that an index writes out; None for any other."""
    try:
        value = ast.literal_eval(index)
    except ValueError:
        return None
    return value if isinstance(value, int | str) else None
