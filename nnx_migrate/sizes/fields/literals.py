"""What lists, dicts, ranges and bindings show as they are written, whatever their names mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.source.bindings import plain_bindings_at

_MOST = 32  # numbers of a range


def gives_entry(node: ast.AST, key: str) -> bool:
    """Whether a dict is written with an entry: ``{"name": "head"}``, ``dict(name="head")``."""
    match node:
        case ast.Dict(keys=keys):
            return any(isinstance(one, ast.Constant) and one.value == key for one in keys)
        case ast.Call(keywords=keywords, args=args):
            named = any(one.arg == key for one in keywords)
            return named or any(gives_entry(one, key) for one in args)
    return False


def bindings_at(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement binds; ``n //= 2`` binds ``n // 2``."""
    if isinstance(node, ast.AugAssign):
        made = ast.BinOp(node.target, node.op, node.value)
        yield node.target, ast.copy_location(made, node)
    yield from plain_bindings_at(node)


def numbers_of_range(bounds: list[ast.expr]) -> ast.Tuple:
    """The first numbers of a range; one of an unknown length may have them all."""
    known = [_whole_number(one) for one in bounds]
    first, end, *steps = known if len(known) > 1 else (0, *known)
    start, step = first or 0, (steps or [1])[0] or 1
    numbers = range(start, start + _MOST * step if end is None else end, step)[:_MOST]
    return ast.Tuple([ast.Constant(one) for one in numbers], ast.Load())


def _whole_number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:  # what is computed
        return None
    return value if isinstance(value, int) else None


def parts_of(value: ast.expr) -> Iterator[ast.expr]:
    """The values of a list, tuple or dict."""
    match value:
        case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
            yield from values
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords, args=args):
            yield from (one.value for one in keywords)
            for one in args:
                yield from parts_of(one)
