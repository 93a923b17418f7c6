"""Calls of scope functions in a compact method: what they are in ``__init__`` and in the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from nnx_migrate.edit.calls import Argument, call, named, with_arguments
from nnx_migrate.edit.expressions import (
    Expression,
    ExpressionLike,
    attribute,
    dotted_node,
    expression,
)
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import without_comments
from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ClassRefused,
    ConversionContext,
    ConvertedFunction,
)
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.sizes.result import Site
from nnx_migrate.sizes.scope_functions import COUNTER, builder_name, caller_name

RULE = "scope_function"


def building_call(
    site: Site, context: ConversionContext, renderer: Renderer, receiver: str, rngs: str
) -> Expression:
    """The call of the function's builder, for ``__init__``.

    Raises:
      Refused: the function stays as it is.
    """
    function = _convert(site, context)
    size_arguments = [
        named(name, renderer.render(site.scope_arguments[name]))
        for name in _arguments(site, function)
    ]
    size_arguments = [replace(one, value=without_comments(one.value)) for one in size_arguments]
    sizes = [named(name, expression(text)) for name, text in site.sizes.items()]
    arguments: list[Argument | ExpressionLike] = [
        *_leading(site, receiver),
        *size_arguments,
        *sizes,
        named("rngs", rngs),
    ]
    return call(_named(site.call.func, renderer, builder_name), *arguments)


def _convert(site: Site, context: ConversionContext) -> ConvertedFunction:
    function = context.scope_function(site.symbol or "")
    if not isinstance(function, ConvertedFunction):
        raise ClassRefused(site.call, *_why(site, function), RULE)
    return function


def _arguments(site: Site, function: ConvertedFunction) -> list[str]:
    return [name for name in function.takes if name in site.scope_arguments]


def _why(site: Site, function: ClassRefusal | None) -> tuple[str, str]:
    name = ast.unparse(site.call.func)
    if function is None:
        return (
            f"{site.symbol}, which builds submodules for it, calls itself",
            "unroll the recursion",
        )
    reason = f"{name} builds submodules for it and cannot be rewritten: {function.reason}"
    return reason, function.recipe


def _named(function: ast.expr, renderer: Renderer, new_name: Callable[[str], str]) -> Expression:
    match function:
        case ast.Name(id=name):
            return dotted_node(new_name(name))
        case ast.Attribute(value=value, attr=name):
            return attribute(renderer.render(value), new_name(name))
    raise ClassRefused(
        function, "the function is not called by its name", "call it by its name", RULE
    )


def builders_of(items: Mapping[int, Item]) -> frozenset[str]:
    """Names of the builders that stand in the text of ``__init__`` without a module before them."""
    functions = (item.call.func for item in items.values() if item.is_in_scope)
    return frozenset(builder_name(one.id) for one in functions if isinstance(one, ast.Name))


def _leading(site: Site, receiver: str) -> list[str]:
    """What a call passes first: the module, unless it is a helper method of it, and the counter."""
    match site.call.func:
        case ast.Attribute(value=ast.Name(id=name)) if name == receiver:
            module = []
        case _:
            module = [receiver]
    return [*module, COUNTER] if site.numbers else module


def calling_edits(
    items: Mapping[int, Item], receiver: str, context: ConversionContext
) -> dict[int, Callable[[Renderer], Expression]]:
    """Edits of the calls: the function is told whose submodules to call."""
    return {
        key: _with_arguments(item.site, _leading(item.site, receiver), context)
        for key, item in items.items()
        if item.is_in_scope and item.site is not None
    }


def _with_arguments(
    site: Site, leading: Sequence[str], context: ConversionContext
) -> Callable[[Renderer], Expression]:
    told_call = site.call

    def make(renderer: Renderer) -> Expression:
        function = _convert(site, context)
        plain = renderer.without(told_call).inner(told_call)
        if not leading:
            found: Expression = plain
            return found
        head = plain.func
        name = _named(told_call.func, renderer, caller_name) if function.stays else head
        call = with_arguments(plain, leading, renderer.unit, first=True)
        made: Expression = call.with_changes(func=name)
        return made

    return make


def not_here(item: Item) -> Callable[[Renderer], Expression]:
    """Edit for ``__init__``, where the result of the call is not known."""

    def make(_: Renderer) -> Expression:
        raise ClassRefused(
            item.call,
            "what is built depends on the result of a call, which only the call knows",
            "build from fields only",
            RULE,
        )

    return make
