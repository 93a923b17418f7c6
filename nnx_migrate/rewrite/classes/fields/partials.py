"""Lambdas that build one submodule, as the partials they stand for.

``token_mixer=lambda: Mixer(heads=4)`` becomes ``token_mixer=functools.partial(Mixer, heads=4)``: a
factory that takes the sizes and streams of whoever calls it, as every class-valued field does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nnx_migrate.constructs import is_linen, name_rule
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.sizes.partials import partial_lambdas
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Import
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk


def partial_edits(project: Project, cls: ClassInfo, remarks: Remarks) -> tuple[Edits, set[int]]:
    """Edits of the class' lambdas, and the ids of the constructor calls in them."""
    known = partial_lambdas(project)
    edits: Edits = {}
    handled: set[int] = set()
    for node in walk(cls.node):
        call = known.get(id(node))
        if call is None:
            continue
        symbol = project.resolve(call.func, cls.scope)
        if is_linen(symbol):
            edits[id(call.func)] = remarks.take(name_rule(str(symbol)), call.func)
        handled |= {id(call), id(call.func)}
        edits[id(node)] = _partial(call, _spelled(cls), remarks)
    return edits, handled


def _spelled(cls: ClassInfo) -> str:
    """How the file writes ``functools.partial``."""
    hidden = names_bound_below(cls.node)
    table = cls.module.table.items()
    names = (n for n, one in table if one == Import("functools.partial") and n not in hidden)
    return next(names, "functools.partial")


def _partial(call: ast.Call, partial: str, remarks: Remarks) -> Callable[[Renderer], Expression]:
    def make(renderer: Renderer) -> Expression:
        function: Expression = renderer.render(call.func)
        plain = [one for one in call.keywords if one.arg is not None]
        given = [*map(renderer.argument, call.args), *map(renderer.keyword, plain)]
        if not given:
            return function
        remarks.imports |= {"functools"} if "." in partial else set()
        return made_call(partial, function, *given, unit=renderer.unit)

    return make
