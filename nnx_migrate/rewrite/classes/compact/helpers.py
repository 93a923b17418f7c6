"""The methods of a class that build submodules for its setup or compact methods.

Helper methods, which call what they build, are converted on their own and shown in the class. Factory
methods, which return it, stay methods: they take a size and streams.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ClassRefused,
    ConversionContext,
    ConvertedFunction,
)
from nnx_migrate.rewrite.classes.items import Item, ItemKind, find_items
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.rewrite.classes.writing.factories import method_edits
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.sizes.factory_calls import FactoryFunction
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each

RULE = "helper"


@dataclass
class Helpers:
    """What the helper methods contribute to the text of their class.

    ``inside`` are ids of the methods, ``builds`` those of the calls in them that build submodules,
    ``parameters`` what they make themselves; ``local`` the edits of functions inside of methods.
    """

    inside: set[int] = field(default_factory=set)
    builds: set[int] = field(default_factory=set)
    parameters: dict[int, Item] = field(default_factory=dict)
    edits: Edits = field(default_factory=dict)
    local: Edits = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    review: list[tuple[ast.AST, str]] = field(default_factory=list)
    notes: list[tuple[ast.AST, str]] = field(default_factory=list)


def helpers_of(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> Helpers:
    """Convert the helper methods of a class.

    Raises:
      Refused: one of them cannot be converted.
    """
    found = Helpers()
    for key, one in scope_functions(project).items():
        if one.method_of is not cls:
            continue
        made = context.scope_function(one.symbol)
        if not isinstance(made, ConvertedFunction):
            raise _refusal(one.node, made)
        found.inside.add(key)
        found.builds |= {id(node) for node in each(one.node, ast.Call)}
        items = find_items(one.cls, sizes).items()
        found.parameters |= {id_: item for id_, item in items if item.kind is ItemKind.PARAM}
        found.edits |= made.edits
        found.imports |= made.imports
        found.review += made.review
        found.notes += made.notes
    for function in factory_functions(project).values():
        if function.method_of is cls:
            _add_factory(found, project, function, sizes, context)
    return found


def _add_factory(
    helpers: Helpers,
    project: Project,
    function: FactoryFunction,
    sizes: ClassSizes,
    context: ConversionContext,
) -> None:
    if function.symbol in context.lazy:
        raise ClassRefused(
            function.node,
            f"what {_callee_name(function)} builds is lazy",
            "build it in setup or in the compact method",
            RULE,
        )
    uses = [sizes.sites[key] for key in function.uses if key in sizes.sites]
    edits, imports = method_edits(project, function, uses, context.new_arguments)
    helpers.inside.add(id(function.node))
    helpers.builds |= {id(call) for call, _ in function.calls}
    (helpers.local if function.is_local else helpers.edits).update(edits)
    helpers.imports |= imports


def _callee_name(function: FactoryFunction) -> str:
    name = function.symbol.rpartition(".")[2]
    return f"the {'local function' if function.is_local else 'helper method'} {name!r}"


def _refusal(node: ast.FunctionDef, refusal: ClassRefusal | None) -> ClassRefused:
    if refusal is None:
        return ClassRefused(
            node,
            f"what the helper method {node.name!r} builds is not known",
            "build it in setup or in the compact method",
            RULE,
        )
    reason = f"its helper method {node.name!r} cannot be rewritten: {refusal.reason}"
    return ClassRefused(refusal.node, reason, refusal.recipe, refusal.rule)
