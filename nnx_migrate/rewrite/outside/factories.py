"""Factory functions: they hand the size and the streams of their callers on to what they build.

``def linear(features): return nn.Dense(features)`` becomes ``def linear(features, *,
in_features=None, rngs): return nnm.Dense(features, in_features=in_features, rngs=rngs)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.rewrite.rules import is_linen, name_rule
from nnx_migrate.rewrite.rules.base import Code, same_call
from nnx_migrate.sizes.factories import IN_FEATURES, RNGS, FactoryFunction
from nnx_migrate.source.project import Module

RULE = "factory_function"
_ADDED = f"{IN_FEATURES}=None, {RNGS}"


def convert_factories(module: Module, context: OutsideContext, draft: Draft) -> None:
    """Edit the factory functions of a module whose users all become NNX."""
    for function in context.factories:
        if function.module is module:
            _convert(function, context, draft)


def _convert(function: FactoryFunction, context: OutsideContext, draft: Draft) -> None:
    node, before = _last_parameter(function.node)
    draft.edits[id(node)] = lambda renderer: f"{renderer.inner(node)}, {before}{_ADDED}"
    for call, symbol in function.calls:
        extra = [f"{RNGS}={RNGS}"]
        if is_linen(symbol):
            name = name_rule(symbol)
            assert isinstance(name, Code), "users of other layers stay Linen"
            draft.edits[id(call.func)] = name.text
            draft.imports |= name.imports
            extra.insert(0, f"{IN_FEATURES}={IN_FEATURES}")
        elif context.new_arguments[symbol]:
            extra.insert(0, f"{IN_FEATURES}={IN_FEATURES}")
        draft.edits[id(call)] = _extended(call, extra)
    message = (
        f"{function.node.name}() now takes {IN_FEATURES}= and {RNGS}=; callers outside pass them"
    )
    draft.note(function.node, RULE, message, "constructor")


def _extended(call: ast.Call, extra: list[str]) -> Callable[[Renderer], str]:
    return lambda renderer: same_call(renderer.render(call.func), call, renderer.render, extra)


def _last_parameter(function: ast.FunctionDef) -> tuple[ast.expr | ast.arg, str]:
    """What the new keyword-only parameters follow, and the star that they need before them."""
    spec = function.args
    if spec.kwonlyargs:
        default = spec.kw_defaults[-1]
        return default if default is not None else spec.kwonlyargs[-1], ""
    if spec.vararg is not None:
        return spec.vararg, ""
    return spec.defaults[-1] if spec.defaults else spec.args[-1], "*, "
