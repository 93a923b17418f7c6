"""Calls that gain arguments; comments and line breaks inside them stay."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from nnx_migrate.constructs.common.base import PLACEMENT, same_call
from nnx_migrate.edit.calls import Argument, with_arguments
from nnx_migrate.edit.expressions import Expression, dotted, element
from nnx_migrate.edit.rendering import Renderer

Make = Callable[[Renderer], Expression]


def with_first(function: str, first: Make, call: ast.Call) -> Make:
    """``function(first, <arguments of call>)``."""
    return _around(function, first, call, lambda _: ())


def with_last(
    function: str, call: ast.Call, extra: Callable[[Renderer], Sequence[Argument]]
) -> Make:
    """``function(<callee of call>, <its arguments>, <more keyword arguments>)``."""
    return _around(function, lambda renderer: renderer.render(call.func), call, extra)


def _around(
    function: str, first: Make, call: ast.Call, extra: Callable[[Renderer], Sequence[Argument]]
) -> Make:
    def make(renderer: Renderer) -> Expression:
        leading, more = Argument(first(renderer)), extra(renderer)
        if any(one.arg in PLACEMENT for one in call.keywords):  # NNX constructors do not take them
            return same_call(function, call, renderer, more, first=[leading])
        plain = renderer.without(call).inner(call)
        made = with_arguments(plain, more, renderer.unit)
        made = with_arguments(made, [leading], renderer.unit, first=True)
        found: Expression = made.with_changes(func=dotted(function), lpar=[], rpar=[])
        return found

    return make


def without_key(function: str, first: Make, call: ast.Call) -> Make:
    """``function(first, <arguments of init but its key>)``."""

    def make(renderer: Renderer) -> Expression:
        plain = renderer.without(call).inner(call)
        args = list(plain.args)
        key = next((one for one in args if one.keyword and one.keyword.value == "rngs"), None)
        if key is None:
            args[0] = args[0].with_changes(value=element(first(renderer)))
            return _renamed(plain.with_changes(args=args), function)
        at = args.index(key)
        del args[at]
        if at == len(args) and args:  # the end of the last line goes with the last argument
            args[-1] = args[-1].with_changes(
                comma=key.comma, whitespace_after_arg=key.whitespace_after_arg
            )
        made = with_arguments(
            plain.with_changes(args=args), [first(renderer)], renderer.unit, first=True
        )
        return _renamed(made, function)

    return make


def _renamed(call: Expression, function: str) -> Expression:
    found: Expression = call.with_changes(func=dotted(function), lpar=[], rpar=[])
    return found
