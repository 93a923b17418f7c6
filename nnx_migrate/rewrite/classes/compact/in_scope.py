"""Calls of scope functions in a compact method: their text in ``__init__`` and in the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ConversionContext,
    ConvertedFunction,
    Refused,
)
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.flow import Step, builds
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import Site
from nnx_migrate.sizes.scope_functions import COUNTER, builder_name, caller_name

RULE = "scope_function"


def building_call(
    site: Site, context: ConversionContext, renderer: Renderer, receiver: str, rngs: str
) -> str:
    """The call of the function's builder, for ``__init__``.

    Raises:
      Refused: the function stays as it is.
    """
    function = _converted(site, context)
    given = [f"{name}={renderer.render(site.given[name])}" for name in _passed(site, function)]
    sizes = [f"{name}={text}" for name, text in site.sizes.items()]
    arguments = [*_leading(site, receiver), *given, *sizes, f"rngs={rngs}"]
    return f"{_named(site.call.func, renderer, builder_name)}({', '.join(arguments)})"


def _converted(site: Site, context: ConversionContext) -> ConvertedFunction:
    function = context.scope_function(site.symbol or "")
    if not isinstance(function, ConvertedFunction):
        raise Refused(site.call, *_why(site, function), RULE)
    return function


def _passed(site: Site, function: ConvertedFunction) -> list[str]:
    return [name for name in function.takes if name in site.given]


def _why(site: Site, function: ClassRefusal | None) -> tuple[str, str]:
    name = ast.unparse(site.call.func)
    if function is None:
        return (
            f"{site.symbol}, which builds submodules for it, calls itself",
            "unroll the recursion",
        )
    reason = f"{name} builds submodules for it and cannot be rewritten: {function.reason}"
    return reason, function.recipe


def _named(function: ast.expr, renderer: Renderer, new_name: Callable[[str], str]) -> str:
    match function:
        case ast.Name(id=name):
            return new_name(name)
        case ast.Attribute(value=value, attr=name):
            return f"{renderer.render(value)}.{new_name(name)}"
    raise Refused(function, "the function is not called by its name", "call it by its name", RULE)


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
) -> dict[int, Callable[[Renderer], str]]:
    """Edits of the calls: the function is told whose submodules to call."""
    return {
        key: _told(item.site, ", ".join(_leading(item.site, receiver)), context)
        for key, item in items.items()
        if item.is_in_scope and item.site is not None
    }


def _told(site: Site, leading: str, context: ConversionContext) -> Callable[[Renderer], str]:
    call = site.call

    def text(renderer: Renderer) -> str:
        function = _converted(site, context)
        plain = renderer.without(call).inner(call)
        head = renderer.render(call.func)
        before, opening, after = plain[len(head) :].partition("(")
        if not plain.startswith(head) or before.strip():
            raise Refused(call, "its text is not understood", "write it as a plain call", RULE)
        name = _named(call.func, renderer, caller_name) if function.stays else head
        if not leading:
            return plain
        return f"{name}{opening}{_joined(leading, after)}"

    return text


def _joined(leading: str, rest: str) -> str:
    """The arguments after ``leading``, on lines of their own where they were."""
    stripped = rest.lstrip()
    gap = rest[: len(rest) - len(stripped)]
    if stripped.startswith(")"):
        return leading + rest
    return f"{gap}{leading},{gap or ' '}{stripped}"


def not_here(item: Item) -> Callable[[Renderer], str]:
    """Edit for ``__init__``, where the result of the call is not known."""

    def text(_: Renderer) -> str:
        raise Refused(
            item.call,
            "what is built depends on the result of a call, which only the call knows",
            "build from fields only",
            RULE,
        )

    return text


def numbered(steps: Sequence[Step]) -> frozenset[str]:
    """Class names under which functions that the steps call number submodules."""
    sites = (item.site for item in builds(steps) if item.is_in_scope)
    return frozenset(name for site in sites if site is not None for name in site.numbers)
