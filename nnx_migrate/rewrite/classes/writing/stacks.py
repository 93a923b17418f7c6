"""Submodules whose variables a lifted function of theirs stacks: built for all layers at once."""

from __future__ import annotations

import ast

from nnx_migrate.edit.calls import call, named
from nnx_migrate.edit.expressions import Expression, expression, function
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.sizes.result import Site
from nnx_migrate.source.project import Scope
from nnx_migrate.source.walking import walk

RULE = "stacked"
_OPTIONS = (
    *("variable_axes", "split_rngs", "length", "axis_size", "metadata_params"),
    "check_constancy_invariants",
)


def stacked(
    node: Expression, site: Site, lift: ast.Call, scope: Scope, rngs: str, renderer: Renderer
) -> Expression:
    """``nnm.stacked(lambda rngs: <node>, ...)`` with those options of the lift that are of variables.

    Args:
      node: builds one layer from ``rngs``.
      site: says the number of layers where no option does.
      scope: of the method that the lift stands in.

    Raises:
      Refused: an option reads what only the call knows.
    """
    options: dict[str, Expression] = {}
    for keyword in lift.keywords:
        if keyword.arg in _OPTIONS:
            _check_known(keyword.value, scope)
            options[str(keyword.arg)] = renderer.render(keyword.value)
    if site.layers is not None:
        options.pop(site.layers_as, None)
        options[site.layers_as] = expression(site.layers)
    given = [named(name, value) for name, value in options.items()]
    return call("nnm.stacked", function([rngs], node), *given, named("rngs", rngs))


def _check_known(value: ast.expr, scope: Scope) -> None:
    local = scope.tables[0] if scope.tables else {}
    for node in walk(value):
        if isinstance(node, ast.Name) and node.id != "self" and node.id in local:
            raise Refused(
                node,
                f"how many layers are stacked, or how, depends on {node.id!r} of the call",
                "write it with fields and literals alone",
                RULE,
            )
