"""Registry of Linen constructs: which file says what about which ``flax.linen`` name.

Every module of this package is one construct: its ``CONSTRUCT`` has the names, fields, shape rules,
conversions, documentation and example, and all that asks about Linen names asks here. ``common`` has
what they are written in. A name that no construct claims is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from nnx_migrate.constructs.cells import convert_carry
from nnx_migrate.constructs.common import decorators
from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal, Source, same_call
from nnx_migrate.constructs.common.rules import CallRule, Construct, Layer, NameRule, Rule
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.calls import named
from nnx_migrate.edit.expressions import expression

__all__ = [
    "all_constructs",
    "all_layers",
    "all_rules",
    "convert_call",
    "convert_carry",
    "convert_decorator",
    "convert_factory",
    "explain",
    "is_layer",
    "is_linen",
    "layer_of",
    "name_rule",
    "rule_for",
]

_PREFIX = "flax.linen"


def is_linen(symbol: str | None) -> bool:
    """Whether a symbol is ``flax.linen`` or below."""
    return symbol is not None and (symbol == _PREFIX or symbol.startswith(f"{_PREFIX}."))


@cache
def all_constructs() -> Mapping[str, Construct]:
    """Every construct by the name of its file."""
    names = sorted(one.name for one in iter_modules(__path__) if not one.ispkg)
    return {name: import_module(f"{__name__}.{name}").CONSTRUCT for name in names}


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in order of file and position."""
    return tuple(rule for construct in all_constructs().values() for rule in construct.rules)


@cache
def _by_symbol() -> Mapping[str, Rule]:
    table: dict[str, Rule] = {}
    for rule in all_rules():
        for symbol in rule.symbols:
            if symbol in table:
                raise AssertionError(f"{symbol} is claimed by {table[symbol].name} and {rule.name}")
            table[symbol] = rule
    return table


def rule_for(symbol: str) -> Rule | None:
    """The rule that claims ``symbol``, if any."""
    return _by_symbol().get(symbol)


@cache
def all_layers() -> Mapping[str, Layer]:
    """By symbol all that is constructed and called like a layer."""
    found = (rule.layer if isinstance(rule, NameRule) else rule for rule in all_rules())
    return {layer.symbol: layer for layer in found if isinstance(layer, Layer)}


def layer_of(symbol: str | None) -> Layer | None:
    """What is known of a built-in layer, by its symbol."""
    return all_layers().get(symbol or "")


def explain(name: str) -> str:
    """Documentation of a rule, by rule name, Linen name (``Dense``) or full symbol.

    Raises:
        KeyError: there is no such rule.
    """
    for construct in all_constructs().values():
        for rule in construct.rules:
            if name == rule.name or rule.symbols & {name, f"{_PREFIX}.{name}"}:
                doc, example = (construct.doc or "").strip(), rule.example
                return f"{doc}\n\nExample ({rule.name})\n- {example.before}\n+ {example.after}\n"
    raise KeyError(name)


def is_layer(symbol: str | None) -> bool:
    """Whether ``symbol`` is a built-in layer that ``convert_call`` builds."""
    return symbol is not None and isinstance(rule_for(symbol), Layer)


def convert_call(call: LayerCall) -> Code | Refusal:
    """New node of a call of a Linen name: layer constructors, and functions with a rule.

    Where only the name changes, the arguments are rendered as they stand.
    """
    if call.symbol is None:
        return _unknown_name("this call")
    rule = rule_for(call.symbol)
    if isinstance(rule, Layer | CallRule):
        return rule.convert(call)
    name = name_rule(call.symbol, Context.CALL)
    if isinstance(name, Refusal):
        return name
    assert name.node is not None, "a decorator is not called"
    node = same_call(name.node, call.call, call.source, keep_placement=True)
    return Code(node, name.imports, name.findings, name.confidence)


def convert_factory(
    call: ast.Call,
    source: Source,
    sizes: Mapping[str, str],
    rngs: str = "rngs",
    *,
    takes_some: bool = False,
) -> Code:
    """A site that builds through a partial, a class-valued field or a local alias.

    The callee takes Linen's signature: arguments stay, sizes and ``rngs`` are added. Where it may
    be one of several that take different sizes, it gets those of ``sizes`` that it takes.
    """
    extra = [named(name, expression(text)) for name, text in sizes.items()]
    streams, function = named("rngs", rngs), source.render(call.func)
    if takes_some:
        function_with_sizes = made_call("nnm.sized", function, *extra)
        return Code(
            same_call(function_with_sizes, call, source, [streams]), imports=frozenset({"nnm"})
        )
    return Code(same_call(function, call, source, [*extra, streams]))


def name_rule(symbol: str, context: Context = Context.VALUE) -> Code | Refusal:
    """New node of a reference to a Linen name (not of the call around it)."""
    rule = rule_for(symbol)
    return _unknown_name(symbol) if rule is None else rule.reference(symbol, context)


def convert_decorator(
    decorator: ast.expr,
    source: Source,
    resolve: Callable[[ast.expr], str | None],
) -> Code | Refusal | None:
    """A whole decorator of a method or function; None when Linen has no part in it.

    ``Code(None)`` means that the decorator goes away.
    """
    if not isinstance(decorator, ast.Call):
        symbol = resolve(decorator)
        return name_rule(symbol, Context.DECORATOR) if symbol and is_linen(symbol) else None
    symbol = resolve(decorator.func)
    if symbol and is_linen(symbol):
        return Refusal(f"a decorator that calls {symbol}", "decorate without the call", decorator)
    target = resolve(decorator.args[0]) if decorator.args else None
    if symbol != "functools.partial" or target is None or not is_linen(target):
        return None
    found = decorators.partial_decorator(decorator, target, source)
    return name_rule(target, Context.VALUE) if found is None else found


def _unknown_name(what: str) -> Refusal:
    return Refusal(
        f"no rule knows {what}", "port this use by hand, or keep it with `# nnx-migrate: keep`"
    )
