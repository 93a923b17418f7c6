"""Submodules of which only other methods than ``__call__`` are called.

A class has the sizes that its ``__call__`` shows: ``nn.Dense(7)`` behind ``one_hot(t, 7)``. Whoever calls
``self.head.score(x)`` alone makes its parameters through ``score``, which has to show the same.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Instance, Static, Use
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.initial_call import METHOD
from nnx_migrate.sizes.inference.witnesses import shown_inside


def check_other_methods(
    analysis: ClassAnalysis, module: Instance, uses: list[Use], sizes: Mapping[str, str]
) -> None:
    """Note a problem where such a method does not show the sizes that the submodule is built with.

    Args:
      sizes: what its constructor is given.
    """
    has_call = module.info.function is None and module.info.find(METHOD) is not None
    if not has_call or not uses or any(one.method == METHOD for one in uses):
        return
    assert module.call is not None
    expressions = {name: ex.parse(text) for name, text in sizes.items()}
    for key, site in analysis.sizes_of(module.info.name).sites.items():
        inner = [
            one
            for use in uses
            if isinstance(use.module, Instance)
            for one in use.module.records.get(key, [])
        ]
        for name, text in site.sizes.items() if inner else ():
            shown, _ = shown_inside(analysis, site, name, inner)
            if shown is None or shown != _from_outside(ex.parse(text), module, expressions):
                methods = ", ".join(sorted({one.method for one in uses}))
                reason = f"{methods} of {module.info.name} does not show the sizes of its __call__"
                analysis.problems.append((module.call, reason))
                return


def _from_outside(size: Expr, module: Instance, arguments: Mapping[str, Expr]) -> Expr | None:
    """A size of the submodule's own code in the words of who builds it; None where that is not known."""
    known = {**module.fields, **module.attributes}
    unknown: list[str] = []

    class Replace(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            value = known.get(node.attr) if ast.unparse(node.value) == "self" else None
            if not isinstance(value, Static):
                unknown.append(node.attr)
                return node
            return value.expr.node

        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id not in arguments:
                unknown.append(node.id)
                return node
            return arguments[node.id].node

    node = Replace().visit(ast.parse(size.text, mode="eval").body)
    return None if unknown else ex.parse(ast.unparse(node))
