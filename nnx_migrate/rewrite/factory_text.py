"""The text of factory functions, with the size and the streams of their callers handed on.

``def linear(features): return nn.Dense(features)`` becomes ``def linear(features, *,
in_features=None, rngs): return nnm.Dense(features, in_features=in_features, rngs=rngs)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from nnx_migrate.constructs import is_linen, name_rule
from nnx_migrate.constructs.base import Code
from nnx_migrate.edit.expressions import code_of
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.render import Renderer, Replacement
from nnx_migrate.rewrite.texts import same_call
from nnx_migrate.sizes.factories import FactoryFunction
from nnx_migrate.sizes.returned import IN_FEATURES, RNGS

_ADDED = f"{IN_FEATURES}=None, {RNGS}"


def factory_edits(
    function: FactoryFunction, new_arguments: Mapping[str, tuple[SizeArgument, ...]]
) -> tuple[dict[int, Replacement], set[str]]:
    """Edits of a factory function whose users become NNX, and keys of the imports they need."""
    node, before = _last_parameter(function.node)
    edits: dict[int, Replacement] = {}
    imports: set[str] = set()
    edits[id(node)] = lambda renderer: f"{renderer.inner(node)}, {before}{_ADDED}"
    for call, symbol in function.calls:
        extra = [f"{RNGS}={RNGS}"]
        if is_linen(symbol):
            name = name_rule(symbol)
            assert isinstance(name, Code), "users of other layers stay Linen"
            edits[id(call.func)] = code_of(name.node)
            imports |= name.imports
            extra.insert(0, f"{IN_FEATURES}={IN_FEATURES}")
        elif new_arguments[symbol]:
            extra.insert(0, f"{IN_FEATURES}={IN_FEATURES}")
        edits[id(call)] = _extended(call, extra)
    return edits, imports


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
