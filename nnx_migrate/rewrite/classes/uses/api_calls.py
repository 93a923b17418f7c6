"""Linen's own methods on ``self`` or a submodule: what each becomes in calls and in ``__init__``."""

from __future__ import annotations

import ast

from nnx_migrate.edit.calls import Argument, call
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.rewrite.classes.data import Refused

RULE = "module-api"


def carried_call(name: str, node: ast.Call, *more: Argument) -> Replacement:
    """``self.sow("losses", "l2", x)`` as ``nnm.sow(self, "losses", "l2", x)``; ``more`` comes last."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value

    def make(renderer: Renderer) -> Expression:
        given = [*map(renderer.argument, node.args), *map(renderer.keyword, node.keywords)]
        return call(f"nnm.{name}", renderer.render(owner), *given, *more, unit=renderer.unit)

    return make


def mutable_in_init(node: ast.Call) -> str:
    """What ``self.is_mutable_collection(...)`` is in Linen's ``init``, as ``__init__`` may ask it.

    Raises:
      Refused: what it is depends on more than the class' fields.
    """
    match node.args:
        case [ast.Constant(value=collection)]:
            return str(collection != "intermediates")
        case [ast.Attribute(value=ast.Name(id="self")) as field]:
            return f"({ast.unparse(field)} != 'intermediates')"
    raise Refused(
        node,
        "the collection is neither a string nor a field",
        "write it as a string",
        RULE,
    )
