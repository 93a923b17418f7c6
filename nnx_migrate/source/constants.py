"""What a class body's names mean in the defaults of its fields, where the text says it.

After ``width: int = 512`` the default of ``hidden: int = 4 * width`` is ``4 * 512``, whatever a caller
gives for ``width``: it is the class body's value.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache

from nnx_migrate.source.names import Assignment, name_parts, table_of
from nnx_migrate.source.walking import children, each

_COMPUTED = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple)
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)  # scopes of their own
_REBINDING = (ast.NamedExpr, ast.Global, ast.Nonlocal)


@lru_cache(maxsize=1 << 12)
def class_constants(node: ast.ClassDef) -> Mapping[int, ast.expr]:
    """The values of names in a class body that reads them from itself, by ``id`` of the read.

    Values are expressions of the class body. They may read names that have values here themselves.
    """
    table, _ = table_of(node.body, "")
    if any(each(one, _REBINDING) for one in node.body if not isinstance(one, _LATER)):
        return {}
    known: dict[str, ast.expr] = {}
    found: dict[int, ast.expr] = {}
    for statement in node.body:
        value = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or value is None:
            continue
        for read in _own_reads(value):
            if read.id in known:
                found[id(read)] = known[read.id]
        for name, binding in table.items():
            is_here = isinstance(binding, Assignment) and binding.value is value
            if is_here and _is_plain(value, table.keys(), found):
                known[name] = value
    return found


def written_out(node: ast.expr, constants: Mapping[int, ast.expr]) -> ast.expr:
    """An expression with the values of the names that have one; the same node if there are none."""
    if id(node) in constants:
        return written_out(constants[id(node)], constants)
    made = {name: _literal(value, constants) for name, value in ast.iter_fields(node)}
    if all(made[name] is value for name, value in ast.iter_fields(node)):
        return node
    changed = copy.copy(node)
    for name, value in made.items():
        setattr(changed, name, value)
    return changed


def _literal(value: object, constants: Mapping[int, ast.expr]) -> object:
    if isinstance(value, list):
        made = [_literal(one, constants) for one in value]
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made
    if isinstance(value, ast.expr | ast.keyword | ast.comprehension):
        return written_out(value, constants)  # type: ignore[arg-type]
    return value


def _is_plain(value: ast.expr, bound: AbstractSet[str], constants: Mapping[int, ast.expr]) -> bool:
    """Whether an expression gives the same wherever the class statement computes it."""
    match value:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return id(value) in constants or name not in bound
        case ast.Attribute():
            parts = name_parts(value)
            return parts is not None and parts[0] not in bound
    return isinstance(value, _COMPUTED) and all(
        isinstance(one, _COMPUTED)
        or (isinstance(one, ast.expr) and _is_plain(one, bound, constants))
        for one in children(value)
    )


def _own_reads(value: ast.AST) -> Iterator[ast.Name]:
    """The names that an expression of a class body reads from the body, in its own scope."""
    match value:
        case ast.Name():
            yield value
        case ast.Lambda():
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _own_reads(value.generators[0].iter)
        case _:
            for one in children(value):
                yield from _own_reads(one)
