"""Scope functions in a module: their new text, and the imports that bring their builders along."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import with_aliases
from nnx_migrate.rewrite.classes.data import ConvertedFunction
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.sizes.mentions import imports_of
from nnx_migrate.sizes.scope_functions import OWNER, builder_name, caller_name
from nnx_migrate.source.project import Module, Project

RULE = "scope_function"


def convert_scope_functions(
    project: Project, module: Module, context: OutsideContext, draft: Draft
) -> None:
    """Edit the scope functions of a module, and import their builders where they are imported."""
    own = {id(node): node for node in module.tree.body}
    for function in context.scope_functions:
        for key in function.edits.keys() & own.keys():
            _convert(own[key], function, draft)
        for alias in imports_of(project, module, function.symbol):
            new = (caller_name, builder_name) if function.stays else (builder_name,)
            draft.edits[id(alias)] = _with(alias, new)


def _convert(node: ast.stmt, function: ConvertedFunction, draft: Draft) -> None:
    draft.edits.update(function.edits)
    draft.imports |= function.imports
    name = function.symbol.rpartition(".")[2]
    if function.stays:
        message = (
            f"{name}() stays for classes that stay Linen; {builder_name(name)}() and"
            f" {caller_name(name)}() build and call the submodules of the others"
        )
    else:
        message = (
            f"{name}() now takes the {OWNER} whose submodules it calls; {builder_name(name)}()"
            " builds them: callers outside call both"
        )
    draft.note(node, RULE, message, "constructor")
    for place, text in (*function.review, *function.notes):
        draft.note(place, RULE, text, "reference")


def _with(alias: ast.alias, new_names: Sequence[Callable[[str], str]]) -> Callable[[Renderer], Any]:
    """The imported name with those of the new functions."""
    bound = alias.asname
    more = [(one(alias.name), None if bound is None else one(bound)) for one in new_names]
    return lambda renderer: with_aliases(renderer.inner(alias), more)
