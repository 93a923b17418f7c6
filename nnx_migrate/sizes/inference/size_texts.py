"""The text of a size in ``__init__``; one that nobody knows is an argument of the constructor."""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Instance, Submodule
from nnx_migrate.constructs import layer_of
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.in_scope import UNKNOWN, is_in_scope, shown_at
from nnx_migrate.sizes.inference.places import place_of
from nnx_migrate.sizes.inference.records import with_evidence

# Sizes of built-in layers that are not the last axis of their first argument.
WHOLE = SizeArgument("input_shape", axis=None)
NOT_FIRST = {
    "in_shape": SizeArgument("in_shape", axis=None),
    "in_kv_features": SizeArgument("in_kv_features", argument="inputs_k"),
    "in_v_features": SizeArgument("in_v_features", argument="inputs_v"),
    "carry_features": SizeArgument("carry_features", argument="carry"),
}


def size_text(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    key: str,
    size: Expr | None,
    conditional: bool,
    argument: SizeArgument | None = None,
) -> str:
    """Text of a size; an unknown one becomes an argument of the class under analysis."""
    assert module.call is not None
    size = with_evidence(analysis, module.call, key, size, argument)
    if size is not None:
        inputs = {name for name in size.names if ex.is_input(name)}
        unsure = inputs if conditional else inputs & _named_by_facts(inputs)
        analysis.optional.update(unsure)
        analysis.required_sizes.update(inputs - unsure)
        return size.text
    return asked_size(analysis, module, key, conditional, argument)


def _named_by_facts(inputs: set[str]) -> set[str]:
    """Sizes of parameters of which the size itself asks whether they are given, and those facts."""
    parameters = {ex.input_of(one)[0] for one in inputs if ex.fact_of(one)}
    return {one for one in inputs if ex.input_of(one)[0] in parameters}


def asked_size(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    key: str,
    conditional: bool,
    argument: SizeArgument | None = None,
) -> str:
    """A constructor argument of the class under analysis for a size that nothing tells."""
    assert module.call is not None
    if analysis.root.info.function is not None:
        analysis.problems.append((module.call, UNKNOWN))
        return ""
    if is_in_scope(module):
        return _size_in_scope(analysis, module, argument, conditional)
    where = place_of(analysis, module.call, counts_rounds=not conditional)
    if where is None:
        analysis.lazy.add(id(module.call))
        return ""
    name = f"{where.replace('/', '_')}_{key}"
    analysis.opaque[name] = SizeArgument(
        name,
        argument=argument.argument if argument else _input_of(module, key),
        axis=argument.axis if argument else -1,
        submodule=where
        if argument is None or not argument.submodule
        else f"{where}/{argument.submodule}",
        optional=conditional,
    )
    return name


def _input_of(module: Submodule | Instance, key: str) -> str | None:
    """The input of a built-in layer that shows a size; None: its first."""
    layer = layer_of(module.symbol) if isinstance(module, Submodule) else None
    return layer.size_inputs.get(key) if layer is not None else None


def _size_in_scope(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    argument: SizeArgument | None,
    conditional: bool,
) -> str:
    """An argument for a size that a scope function needs, named for the submodule that shows it."""
    assert isinstance(module, Instance)
    assert argument is not None
    shown = shown_at(analysis, module, argument)
    if shown is None or shown.submodule is None:
        analysis.problems.append((module.call or analysis.root.info.node, UNKNOWN))
        return ""
    key = "in_features" if argument.axis == -1 else argument.name
    name = f"{shown.submodule.replace('/', '_')}_{key}"
    asked = replace(shown, name=name, optional=conditional)
    if analysis.opaque.setdefault(name, asked) != asked:
        analysis.problems.append((module.call or analysis.root.info.node, UNKNOWN))
    return name
