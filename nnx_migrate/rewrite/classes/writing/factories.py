"""The new text of factory functions and methods: they hand on a size and streams.

``def linear(features): return nn.Dense(features)`` becomes ``def linear(features, *,
in_features=None, rngs): return nnm.Dense(features, in_features=in_features, rngs=rngs)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from nnx_migrate.constructs import convert_call, is_linen, name_rule
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal, same_call
from nnx_migrate.edit.calls import Argument, named
from nnx_migrate.edit.expressions import Expression, dotted_node
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.signatures import parameter, with_last_parameters, without_parameter
from nnx_migrate.model import Confidence, SizeArgument
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.factory_calls import FactoryFunction
from nnx_migrate.sizes.result import Site
from nnx_migrate.sizes.return_values import IN_FEATURES, RNGS
from nnx_migrate.source.dtypes import may_mix_dtypes
from nnx_migrate.source.project import Project, Scope


def factory_edits(
    function: FactoryFunction, new_arguments: Mapping[str, tuple[SizeArgument, ...]]
) -> tuple[dict[int, Replacement], set[str]]:
    """Edits of a factory function whose users become NNX, and keys of the imports they need."""
    sizes = [parameter(IN_FEATURES, default=dotted_node("None"))]
    edits: dict[int, Replacement] = {id(function.node): _with_parameters(function, sizes)}
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
        edits[id(call)] = _extend(call, extra)
    return edits, imports


def method_edits(
    project: Project,
    function: FactoryFunction,
    uses: Collection[Site],
    new_arguments: Mapping[str, tuple[SizeArgument, ...]],
) -> tuple[dict[int, Replacement], set[str]]:
    """Edits of a factory method: all its calls are known, so it takes a size where all of them give one.

    ``def dense(self, n): return nn.Dense(n)`` becomes ``def dense(self, n, *, in_features, rngs): return
    nnx.Linear(in_features, n, rngs=rngs)``.
    """
    edits, imports = factory_edits(function, new_arguments)
    names = {frozenset(site.sizes) for site in uses}
    is_known = len(names) == 1 and not any(one.out_variable or one.takes_some for one in uses)
    sizes = names.pop() if is_known else frozenset()
    if not is_known or not sizes <= {IN_FEATURES}:
        return edits, imports
    edits[id(function.node)] = _with_parameters(function, [parameter(one) for one in sizes])
    needed: set[str] = set()
    for call, symbol in function.calls:
        if symbol in project.linen:
            extra = [named(one.name, one.name) for one in new_arguments[symbol]]
            if not {one.name for one in new_arguments[symbol]} <= sizes:
                return factory_edits(function, new_arguments)
            edits[id(call)] = _extend(call, [*extra, named(RNGS, RNGS)])
            continue
        make = _layer(project, function, call, symbol, sizes)
        plain = make(renderer_of(function.module, {}))
        if (
            not isinstance(plain, Code)
            or plain.findings
            or plain.confidence is not Confidence.EXACT
        ):
            return factory_edits(function, new_arguments)
        needed |= plain.imports
        del edits[id(call.func)]
        edits[id(call)] = _node_of(make)
    return edits, needed


def _layer(
    project: Project, function: FactoryFunction, call: ast.Call, symbol: str, sizes: Collection[str]
) -> Callable[[Renderer], Code | Refusal]:
    scope = Scope(function.module).enter(function.node)

    def make(renderer: Renderer) -> Code | Refusal:
        arguments = {one: one for one in sizes}
        return convert_call(
            LayerCall(
                symbol,
                call,
                renderer,
                arguments,
                RNGS,
                lambda node: project.resolve(node, scope),
                mixes_dtypes=lambda: may_mix_dtypes(project),
            )
        )

    return make


def _node_of(make: Callable[[Renderer], Code | Refusal]) -> Replacement:
    def node(renderer: Renderer) -> Expression:
        made = make(renderer)
        assert isinstance(made, Code), "it was one without other edits"
        assert made.node is not None, "a constructor call does not go away"
        return made.node

    return node


def _extend(call: ast.Call, extra: list[Argument]) -> Callable[[Renderer], Expression]:
    return lambda renderer: same_call(renderer.render(call.func), call, renderer, extra)


def _with_parameters(function: FactoryFunction, sizes: Sequence[Any]) -> Callable[[Renderer], Any]:
    def make(renderer: Renderer) -> Any:
        made = renderer.without(function.node).inner(function.node)
        if function.is_named:  # the caller's attribute says it
            made = without_parameter(made, "name")
        longer = with_last_parameters(made, [*sizes, parameter(RNGS)])
        return longer if isinstance(function.node, ast.Lambda) else [longer]

    return make
