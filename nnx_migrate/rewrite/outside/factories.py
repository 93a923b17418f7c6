"""Factory functions, with the size and the streams of their callers handed on.

``def linear(features): return nn.Dense(features)`` becomes ``def linear(features, *,
in_features=None, rngs): return nnm.Dense(features, in_features=in_features, rngs=rngs)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from nnx_migrate.constructs import is_linen, name_rule
from nnx_migrate.constructs.common.base import Code, same_call
from nnx_migrate.edit.calls import Argument, named
from nnx_migrate.edit.expressions import Expression, dotted
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import parameter, with_last_parameters
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.sizes.factories import FactoryFunction
from nnx_migrate.sizes.return_values import IN_FEATURES, RNGS
from nnx_migrate.source.project import Module

RULE = "factory_function"


def convert_factories(module: Module, context: OutsideContext, draft: Draft) -> None:
    """Edit the factory functions of a module whose users all become NNX."""
    for function in context.factories:
        if function.module is module:
            edits, imports = _edits(function, context.new_arguments)
            draft.edits |= edits
            draft.imports |= imports
            message = (
                f"{function.node.name}() now takes {IN_FEATURES}= and {RNGS}=;"
                " callers outside pass them"
            )
            draft.note(function.node, RULE, message, "constructor")


def _edits(
    function: FactoryFunction, new_arguments: Mapping[str, tuple[SizeArgument, ...]]
) -> tuple[dict[int, Replacement], set[str]]:
    """Edits of a factory function whose users become NNX, and keys of the imports they need."""
    edits: dict[int, Replacement] = {id(function.node): _with_parameters(function.node)}
    imports: set[str] = set()
    for call, symbol in function.calls:
        extra = [named(RNGS, RNGS)]
        if is_linen(symbol):
            name = name_rule(symbol)
            assert isinstance(name, Code), "users of other layers stay Linen"
            edits[id(call.func)] = name.node
            imports |= name.imports
        if is_linen(symbol) or new_arguments[symbol]:
            extra.insert(0, named(IN_FEATURES, IN_FEATURES))
        edits[id(call)] = _extended(call, extra)
    return edits, imports


def _extended(call: ast.Call, extra: list[Argument]) -> Callable[[Renderer], Expression]:
    return lambda renderer: same_call(renderer.render(call.func), call, renderer, extra)


def _with_parameters(node: ast.FunctionDef) -> Callable[[Renderer], list[Any]]:
    def make(renderer: Renderer) -> list[Any]:
        more = [parameter(IN_FEATURES, default=dotted("None")), parameter(RNGS)]
        return [with_last_parameters(renderer.without(node).inner(node), more)]

    return make
