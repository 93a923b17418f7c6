"""What converts but behaves otherwise around construction, for a person to look at."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.variables.init_updates import init_updates
from nnx_migrate.sizes.expressions.subscripts import key_text
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

Note = tuple[ast.AST, str]
_MOVED = (
    "Linen's init runs this update: nnx_migrate.nn.lazy_init(model, *inputs) once after building the"
    " outermost module does, too"
)


def lazy_note(item: Item) -> Note:
    """A variable that only a call creates."""
    return item.call, (
        "the first call creates this variable, where Linen's init did: call the module once "
        "after constructing it if its state is read or returned from jax.jit"
    )


def updates_at_init(
    cls: ClassInfo, items: Mapping[int, Item], variables: frozenset[str]
) -> Iterator[Note]:
    """Assignments to a variable's value that Linen's ``init`` performs and ``__init__`` does not."""
    updates = [one for _, one in init_updates(cls, items)]
    updates += _unguarded(cls, items, variables)
    yield from ((one, _MOVED) for one in {id(one): one for one in updates}.values())


def _unguarded(
    cls: ClassInfo, items: Mapping[int, Item], variables: frozenset[str]
) -> Iterator[ast.stmt]:
    for method in cls.methods.values():
        receiver = receiver_of(method)
        local = {
            one.targets[0].id
            for one in each(method, ast.Assign)
            if isinstance(one.targets[0], ast.Name)
            and id(one.value) in items
            and items[id(one.value)].kind is ItemKind.VARIABLE
        }
        for statement in _unconditional(method.body):
            if not isinstance(statement, ast.Assign | ast.AugAssign):
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(_is_value(one, receiver, local, variables) for one in targets):
                yield statement


def _unconditional(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.For | ast.With):
            yield from _unconditional(statement.body)


def _is_value(target: ast.expr, receiver: str, local: set[str], variables: frozenset[str]) -> bool:
    match target:
        case ast.Attribute(value=ast.Name(id=name), attr="value"):
            return name in local
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr=attr), attr="value"):
            return name == receiver and attr in variables
        case _:
            return False


def handed_on(attributes: Iterable[Attribute]) -> Iterator[Note]:
    """Submodules of ``setup`` given to one that ``nnx.state`` lists earlier."""
    known = [one for one in attributes if one.kind is Kind.SUBMODULE]
    names = {one.name: one.stored or one.name for one in known}
    for one in known:
        holder = one.stored or one.name
        if not isinstance(one.value, ast.Call):
            continue
        given = [*one.value.args, *(keyword.value for keyword in one.value.keywords)]
        for node in (inner for value in given for inner in walk(value)):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=attr) if (
                    names.get(attr, holder) > holder
                ):
                    note = (
                        f"nnx.state lists the parameters of self.{attr} below {holder!r}, which "
                        f"sorts before {names[attr]!r}; Linen lists them under {names[attr]!r}"
                    )
                    yield one.value, note


# Submodules of ``setup`` that no code of the project reads: Linen's ``init`` gives them no parameters.

_UNREAD = (
    "no code of the project reads {}: Linen's init makes no parameters for a submodule that is never"
    " called, the NNX module has them"
)


def unread(
    project: Project, cls: ClassInfo, attributes: Sequence[Attribute], items: Mapping[int, Item]
) -> Iterator[Note]:
    """The attributes, and items of lists and dicts in them, that hold such submodules."""
    same = [one.name for one in attributes]
    for one in attributes:
        shared = sum(other.value is one.value for other in attributes) > 1
        if shared or same.count(one.name) > 1 or not _builds(one.value, items):
            continue
        reads = _reads(project, cls, one.name)
        if not reads:
            yield one.value, _UNREAD.format(f"self.{one.name}")
            continue
        for key, value in _entries(one.value):
            keys = {_key(read) for read in reads}
            if _builds(value, items) and None not in keys and key not in keys:
                yield value, _UNREAD.format(f"self.{one.name}[{key}]")


def _builds(value: ast.expr, items: Mapping[int, Item]) -> bool:
    found = (items.get(id(one)) for one in walk(value))
    return any(
        one is not None and one.kind is ItemKind.SITE and not one.free_of_variables for one in found
    )


def _reads(project: Project, cls: ClassInfo, name: str) -> list[ast.AST]:
    """What stands around every read of an attribute of this name, and every mention in a string."""
    own = list(_reads_in(cls.node, name))
    if any(_key(one) is None for one in own):
        return own
    rest = [one.tree for one in project.modules.values() if name in one.text]
    return [found for tree in rest for found in _reads_in(tree, name)]


def _reads_in(tree: ast.AST, name: str) -> list[ast.AST]:
    named, computed = _all_reads(tree)
    return [*named.get(name, ()), *computed]


@lru_cache(maxsize=1 << 12)  # every attribute of every class asks
def _all_reads(tree: ast.AST) -> tuple[dict[str, list[ast.AST]], list[ast.AST]]:
    """What stands around every read of an attribute, by its name, and reads of computed names."""
    named: dict[str, list[ast.AST]] = {}
    computed: list[ast.AST] = []
    for node in walk(tree):
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Attribute(attr=attr, ctx=ast.Load()):
                    named.setdefault(attr, []).append(node)
                case ast.Constant(value=str(text)):
                    for word in {*text.split(".")}:
                        named.setdefault(word, []).append(node)
                case ast.Call(func=ast.Name(id="getattr" | "vars")):
                    computed.append(child)
    return named, computed


def _key(read: ast.AST) -> str | None:
    """The item of a list or dict that is read, where that is written out."""
    return key_text(read.slice) if isinstance(read, ast.Subscript) else None


def _entries(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            if not any(isinstance(one, ast.Starred) for one in parts):
                yield from ((str(index), one) for index, one in enumerate(parts))
        case ast.Dict(keys=keys, values=values):
            texts = [key_text(one) for one in keys]
            if None not in texts:
                yield from zip((one or "" for one in texts), values, strict=True)
