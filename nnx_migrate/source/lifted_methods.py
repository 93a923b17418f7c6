"""``methods=`` of a lifted class: ``nn.scan(Block, methods={"step": dict(length=3)})``."""

from __future__ import annotations

import ast
from collections.abc import Mapping

Options = Mapping[str, ast.expr]


def lifted_methods(methods: ast.expr) -> Mapping[str, Options | None] | None:
    """The methods by name, with the options of each, or None in their place for the lift's own.

    None where the text does not show them. ``dict(...)`` is taken for Python's.
    """
    match methods:
        case ast.List(elts=names) | ast.Tuple(elts=names):
            return _distinct([_text(one) for one in names], [None] * len(names))
        case ast.Dict(keys=keys, values=values):
            options = [_options(one) for one in values]
            if any(one is None for one in options):
                return None
            return _distinct([_text(one) for one in keys], options)
    return None


def _distinct(
    names: list[str | None], options: list[Options | None]
) -> Mapping[str, Options | None] | None:
    known = [one for one in names if one is not None]
    if not known or len({*known}) < len(names):
        return None
    return dict(zip(known, options, strict=True))


def _options(node: ast.expr) -> Options | None:
    match node:
        case ast.Dict(keys=keys, values=values):
            names = [_text(one) for one in keys]
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            names, values = [one.arg for one in keywords], [one.value for one in keywords]
        case _:
            return None
    known = [one for one in names if one is not None]
    return dict(zip(known, values, strict=True)) if len({*known}) == len(names) else None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
