"""Built-in layers as whole models: ``model = nn.Dense(10)``, then ``model.init(key, x)``.

``model = nnm.build(nnm.factory.Dense, 10, in_features=x.shape[-1], rngs=key)`` with the uses of the
name rewritten as those of a converted class, when the input that ``init`` gets shows the size. What
does not go through is left as it is, to be refused as any layer built outside of a class.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from nnx_migrate.constructs import all_layers, name_rule
from nnx_migrate.constructs.common.base import PLACEMENT, Code
from nnx_migrate.constructs.common.rules import Layer
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.rewrite.outside.models import NamedModel
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, parse

_STAND_IN = "<flax.linen>"  # no module of a project is called so


def convert_layers(project: Project, places: Places, context: OutsideContext, draft: Draft) -> None:
    """Rewrite every ``name = nn.<Layer>(...)`` whose uses can all be rewritten with it."""
    context = replace(
        context, new_arguments={**context.new_arguments, **_sizes()}, memo=context.memo
    )
    for place in places:
        match place.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                cls = _layer(project, call, place)
                if cls is not None:
                    _convert(project, places, context, draft, place.node, name, call, cls)


def _layer(project: Project, call: ast.Call, place: Place) -> ClassInfo | None:
    """The stand-in of the layer that a call builds; None when its arguments do not show."""
    symbol = project.resolve(call.func, place.scope)
    unpacked = any(isinstance(one, ast.Starred) for one in call.args)
    keywords = {one.arg for one in call.keywords}
    if symbol is None or unpacked or keywords & {None, *PLACEMENT}:
        return None
    return _stand_ins().get(symbol)


def _convert(
    project: Project,
    places: Places,
    context: OutsideContext,
    draft: Draft,
    statement: ast.Assign,
    name: str,
    call: ast.Call,
    cls: ClassInfo,
) -> None:
    scope = places[call].scope
    function = name_rule(project.resolve(call.func, scope) or "")
    if not isinstance(function, Code):
        return
    trial = Draft(edits=dict(draft.edits), refused=set(draft.refused))
    assert function.node is not None
    trial.edits[id(call.func)] = function.node
    trial.imports |= function.imports
    NamedModel(project, places, context, trial, statement, name, call, cls).convert()
    if id(call) in trial.refused:
        return
    draft.edits.update(trial.edits)
    draft.imports |= trial.imports
    draft.findings += trial.findings


@cache
def _stand_ins() -> Mapping[str, ClassInfo]:
    """Classes with the layers' names and inputs, and no fields: what reads them is refused."""
    text = "from flax.linen import Module\n"
    for layer in _layers():
        text += f"class {layer.name}(Module):\n    def __call__(self, {layer.sole_input}): ...\n"
    project = Project({_STAND_IN: parse(_STAND_IN, f"{_STAND_IN}.py", text)})
    classes = {name.rpartition(".")[2]: cls for name, cls in project.linen.items()}
    return {layer.symbol: classes[layer.name] for layer in _layers()}


def _layers() -> list[Layer]:
    return [layer for layer in all_layers().values() if layer.sole_input]


def _sizes() -> dict[str, tuple[SizeArgument, ...]]:
    return {
        _stand_ins()[layer.symbol].name: (
            SizeArgument("in_features", argument=layer.sole_input, axis=-1),
        )
        for layer in _layers()
    }
