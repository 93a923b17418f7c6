"""Registry of rewriting rules: which rule claims which ``flax.linen`` name.

Every module of this package has a docstring (what becomes what, what differs, where that is
documented, for which Flax versions) and ``RULES``. Adding a construct is one file here and one test
file. A name that no rule claims is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from nnx_migrate.constructs import decorators
from nnx_migrate.constructs.base import (
    CallRule,
    Code,
    Context,
    LayerCall,
    LayerRule,
    Refusal,
    Rule,
    Source,
    same_call,
)
from nnx_migrate.constructs.cells import convert_carry
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.calls import named
from nnx_migrate.edit.expressions import expression

__all__ = [
    "all_rules",
    "convert_call",
    "convert_carry",
    "convert_decorator",
    "convert_factory",
    "explain",
    "is_layer",
    "is_linen",
    "name_rule",
    "rule_for",
]

_HELPERS = ("base", "layers", "lifts", "references")
_PREFIX = "flax.linen"


def is_linen(symbol: str | None) -> bool:
    """Whether a symbol is ``flax.linen`` or below."""
    return symbol is not None and (symbol == _PREFIX or symbol.startswith(f"{_PREFIX}."))


@cache
def _modules() -> tuple[str, ...]:
    names = (one.name for one in iter_modules(__path__))
    return tuple(f"{__name__}.{name}" for name in sorted(names) if name not in _HELPERS)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in order of module and position."""
    found: list[Rule] = []
    for name in _modules():
        found.extend(import_module(name).RULES)
    return tuple(found)


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


def explain(name: str) -> str:
    """Documentation of a rule, by rule name, Linen name (``Dense``) or full symbol.

    Raises:
        KeyError: there is no such rule.
    """
    for module in _modules():
        for rule in import_module(module).RULES:
            if name == rule.name or rule.symbols & {name, f"{_PREFIX}.{name}"}:
                doc = (import_module(module).__doc__ or "").strip()
                example = rule.example
                return f"{doc}\n\nExample ({rule.name})\n- {example.before}\n+ {example.after}\n"
    raise KeyError(name)


def is_layer(symbol: str | None) -> bool:
    """Whether ``symbol`` is a built-in layer that ``convert_call`` builds."""
    return symbol is not None and isinstance(rule_for(symbol), LayerRule)


def needed_sizes(symbol: str) -> frozenset[str]:
    """The sizes that a built-in layer has to be given in NNX."""
    rule = rule_for(symbol)
    return frozenset(rule.sizes) if isinstance(rule, LayerRule) else frozenset()


def convert_call(call: LayerCall) -> Code | Refusal:
    """New node of a call of a Linen name: layer constructors, and functions with a rule.

    Where only the name changes, the arguments are rendered as they stand.
    """
    if call.symbol is None:
        return _unclaimed("this call")
    rule = rule_for(call.symbol)
    if isinstance(rule, LayerRule | CallRule):
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
        sized = made_call("nnm.sized", function, *extra)
        return Code(same_call(sized, call, source, [streams]), imports=frozenset({"nnm"}))
    return Code(same_call(function, call, source, [*extra, streams]))


def name_rule(symbol: str, context: Context = Context.VALUE) -> Code | Refusal:
    """New node of a reference to a Linen name (not of the call around it)."""
    rule = rule_for(symbol)
    return _unclaimed(symbol) if rule is None else rule.reference(symbol, context)


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


def _unclaimed(what: str) -> Refusal:
    return Refusal(
        f"no rule knows {what}", "port this use by hand, or keep it with `# nnx-migrate: keep`"
    )
