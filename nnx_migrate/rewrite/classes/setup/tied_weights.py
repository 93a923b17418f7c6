"""A layer of ``setup`` that a call gives its parameters (``self.head.apply({...}, h)``)."""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.edit.expressions import Expression, attribute, code_of, integer
from nnx_migrate.edit.expressions import item as index
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.walking import names_in
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.source.bindings import names_bound_below

RULE = "tied"


def tied_layer(
    item: Item,
    params: ast.expr,
    renderer: Renderer,
    builder: Builder,
    setup: ast.FunctionDef | None,
    sizes: frozenset[str],
) -> Expression:
    """What builds the layer inside the call.

    Args:
      params: the parameters given, as written.
      setup: the method whose local names the call does not have.
      sizes: size arguments of ``__init__``, which the call does not have either.
    """
    made = builder(item, renderer)
    local = names_bound_below(setup) - {"self"} if setup is not None else frozenset()
    clash = names_in(made) & local
    if clash:
        raise ClassRefused(
            item.call,
            f"the layer given parameters in the call needs {min(clash)!r} of setup",
            f"read it from self instead of {min(clash)!r}",
            RULE,
        )
    unknown = names_in(made) & sizes
    if not unknown:
        return made
    kernel, site = _entry(params, "kernel"), item.site
    is_dense = site is not None and site.symbol == "flax.linen.Dense"
    if kernel is None or site is None or not is_dense or unknown != {site.sizes["in_features"]}:
        raise ClassRefused(
            item.call,
            f"the layer given parameters in the call needs the size {min(unknown)!r}",
            "give the size as a field",
            RULE,
        )
    shape = code_of(index(attribute(renderer.render(kernel), "shape"), integer(0)))
    return builder(replace(item, site=replace(site, sizes={"in_features": shape})), renderer)


def _entry(node: ast.expr, key: str) -> ast.expr | None:
    """The value of a literal key in a dict display."""
    if isinstance(node, ast.Dict):
        for name, value in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key:
                return value
    return None
