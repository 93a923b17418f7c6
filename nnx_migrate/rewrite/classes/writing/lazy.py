"""Pieces of the new class."""

from __future__ import annotations

from collections.abc import Callable

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, dotted_node
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item

RULE = "class"


def lazy_call(item: Item) -> Callable[[Renderer], Expression]:
    """Edit: a variable that the first call creates."""

    def make(renderer: Renderer) -> Expression:
        assert item.name is not None
        init = dotted_node("None") if item.init is None else renderer.render(item.init)
        if item.keywords:
            raise ClassRefused(
                item.call, "keyword arguments of the initialiser", "pass them by position", RULE
            )
        arguments = map(renderer.argument, item.arguments)
        collection = item.collection_node(renderer)
        name = renderer.render(item.name)
        return call("nnm.lazy_variable", "self", collection, name, init, *arguments)

    return make
