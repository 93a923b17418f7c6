"""Cells that a method builds for their carry alone: ``nn.GRUCell(8).initialize_carry(key, shape)``.

They count where Linen numbers submodules, have no parameters, and no class builds them in NNX.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.source.walking import each, names_in, walk

_CARRY = "initialize_carry"


@dataclass(frozen=True)
class CarryCell:
    """A cell, the call that asks it for a carry, and the statement that gives it a local name.

    >>> cell = nn.GRUCell(8)  # doctest: +SKIP
    >>> carry = cell.initialize_carry(key, shape)  # doctest: +SKIP
    """

    cell: ast.Call
    carry_call: ast.Call
    statement: ast.Assign | None = None


@lru_cache(maxsize=4096)
def carry_cells(method: ast.FunctionDef) -> Mapping[int, CarryCell]:
    """What a method only asks for a carry, where it is built or by a local name; by id of the asking call."""
    return {id(one.carry_call): one for one in (*_in_place(method), *_named(method))}


def _in_place(method: ast.FunctionDef) -> Iterator[CarryCell]:
    for node in walk(method):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as built, attr=name)) if (
                name == _CARRY
            ):
                yield CarryCell(built, node)


def _named(method: ast.FunctionDef) -> Iterator[CarryCell]:
    names = each(method, ast.Name)
    parameters = [one.arg for one in each(method, ast.arg)]
    for block in _blocks(method):
        for number, statement in enumerate(block):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as built):
                    carry_calls = _carry_calls(block[number + 1 :], name)
                    is_own = name not in parameters
                    is_only = sum(one.id == name for one in names) == len(carry_calls) + 1
                    if carry_calls and is_own and is_only and _stays(built, names):
                        yield from (CarryCell(built, one, statement) for one in carry_calls)


def _blocks(method: ast.FunctionDef) -> Iterator[Sequence[ast.stmt]]:
    for node in walk(method):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _carry_calls(block: Sequence[ast.stmt], name: str) -> list[ast.Call]:
    found: list[ast.Call] = []
    for node in (one for statement in block for one in walk(statement)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method)):
                found += [node] if (owner, method) == (name, _CARRY) else []
    return found


def _stays(cell: ast.Call, names: Sequence[ast.Name]) -> bool:
    """Whether the cell's arguments are the same where it is asked: nothing binds their names later."""
    read = names_in(cell)
    return all(
        one.lineno < cell.lineno
        for one in names
        if one.id in read and not isinstance(one.ctx, ast.Load)
    )
