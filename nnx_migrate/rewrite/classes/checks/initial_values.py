"""Initial values that follow another variable: ``self.variable("ema", "codes", lambda: codes)``.

Linen makes a variable wherever it is missing, of the parameters that are there: ``apply({"params": p}, x,
mutable=["ema"])`` starts the average at ``p``, and a scan's at the parameters that all steps share. A constructor
would start it at parameters of its own, which those that are there replace. Nor would it draw a key of a
stream in the call's order: where others are drawn too, ``key = self.make_rng("noise")`` counts among them in
``apply``, and after those that come first.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of, self_call
from nnx_migrate.rewrite.classes.setup.dependence import MAKERS, STATIC, Dependence, dependence_in
from nnx_migrate.source.bindings import bindings_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import last_name
from nnx_migrate.source.walking import each, given_values, is_name, walk

RULE = "variable"
_OF_SHAPE = frozenset({"empty_like", "ones_like", "zeros_like"})  # of whatever value


def check_initial_values(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse a variable whose initial value is computed from what another collection has, or of a drawn key.

    Variables of one collection are there together, or none of them is.

    Raises:
      ClassRefused: a constructor would compute it from other values than Linen.
    """
    variables = [one for one in items.values() if one.kind is ItemKind.VARIABLE]
    if not variables:
        return
    is_one = len({one.collection_text for one in variables}) == 1
    makers = frozenset({"param"}) if is_one else MAKERS
    of_parameters, of_others = _draws(cls)
    for method in cls.methods.values():
        made = [items[id(one)] for one in walk(method) if id(one) in items]
        made = [one for one in made if one.kind is ItemKind.VARIABLE and one.init is not None]
        if not made:
            continue
        values = _reading(cls, method, makers)
        for one in made:
            if values.follows(one):
                raise ClassRefused(
                    one.call,
                    "its initial value follows another variable, which may be there before it",
                    "keep it lazy, or start it at a value that its arguments give",
                    RULE,
                )
            if len(of_others) < 2:
                continue
            draws = _reading(cls, method, frozenset({"make_rng"}), of_parameters)
            if draws.follows(one):
                raise ClassRefused(
                    one.call,
                    "its initial value takes a key that the call draws in an order of its own",
                    "keep it lazy, or draw the key from the stream 'params'",
                    RULE,
                )


def _draws(cls: ClassInfo) -> tuple[frozenset[int], frozenset[int]]:
    """Calls that draw from the stream of parameters, which is there in ``init`` alone, and from others, by id."""
    calls = [
        call
        for base in cls.mro
        for method in base.methods.values()
        for call in each(method, ast.Call)
        if self_call(call, receiver_of(method)) == "make_rng"
    ]
    of_parameters = [
        call
        for call in calls
        for one in given_values(call)
        if isinstance(one, ast.Constant) and one.value == "params"
    ]
    found = frozenset(map(id, of_parameters))
    return found, frozenset(map(id, calls)) - found


def _reading(
    cls: ClassInfo,
    method: ast.FunctionDef,
    makers: frozenset[str],
    exempt: frozenset[int] = frozenset(),
) -> _Reading:
    begun = Dependence(receiver_of(method), makers=makers, exempt=exempt)
    return _Reading(method, dependence_in(cls, method, begun))


@dataclass(frozen=True)
class _Reading:
    """What expressions of a method read of variables."""

    method: ast.FunctionDef
    dependence: Dependence

    def follows(self, item: Item) -> bool:
        """Whether the initial value of a variable does: what its initializer computes, and of what."""
        assert item.init is not None
        arguments = [*item.arguments, *(one.value for one in item.keywords)]
        if last_name(item.init) in _OF_SHAPE:
            arguments = arguments[1:]
        parts: list[ast.AST] = [item.init, *arguments]
        if isinstance(item.init, ast.Name):
            functions = each(self.method, ast.FunctionDef)
            parts += [s for one in functions if one.name == item.init.id for s in one.body]
            pairs = bindings_below(self.method)
            parts += [value for target, value in pairs if is_name(target, item.init.id)]
        return any(map(self._reads, parts))

    def _reads(self, node: ast.AST) -> bool:
        if self.dependence.makes(node):
            return True
        match node:
            case ast.Call(func=function, args=[_, *_]) if last_name(function) in _OF_SHAPE:
                return any(map(self._reads, given_values(node)[1:]))
            case ast.Lambda(body=body):
                return self._reads(body)
            case ast.Attribute() | ast.Name() if self.dependence.of(node):
                return True
            case ast.Attribute(attr=attr) if attr in STATIC:
                return False
        return any(map(self._reads, ast.iter_child_nodes(node)))
