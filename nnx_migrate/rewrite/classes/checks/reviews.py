"""What converts but behaves otherwise around construction, for a person to look at."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.rewrite.classes.items import Item, is_variable, receiver_of
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.variables.init_updates import init_updates
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, given_values, walk

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
    updates += _later_statements(cls, items, variables)
    yield from ((one, _MOVED) for one in {id(one): one for one in updates}.values())


def _later_statements(
    cls: ClassInfo, items: Mapping[int, Item], variables: frozenset[str]
) -> Iterator[ast.stmt]:
    for method in cls.methods.values():
        receiver = receiver_of(method)
        local = {
            one.targets[0].id
            for one in each(method, ast.Assign)
            if isinstance(one.targets[0], ast.Name) and is_variable(one.value, items)
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
    names = {one.name: one.storage_name or one.name for one in known}
    for one in known:
        holder = one.storage_name or one.name
        if not isinstance(one.value, ast.Call):
            continue
        arguments = given_values(one.value)
        for node in (inner for value in arguments for inner in walk(value)):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=attr) if (
                    names.get(attr, holder) > holder
                ):
                    note = (
                        f"nnx.state lists the parameters of self.{attr} below {holder!r}, which "
                        f"sorts before {names[attr]!r}; Linen lists them under {names[attr]!r}"
                    )
                    yield one.value, note
