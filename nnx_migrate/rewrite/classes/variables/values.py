"""What ``variable.value`` becomes: how a method reads and replaces the value of a variable.

Linen's variable holds any value, None and containers too, and an assignment replaces it whole.
``v[...]`` of NNX reads arrays only, and ``v[...] = x`` keeps the old shape and dtype, so an array is
read as ``v[...]`` where its initialiser shows that it is one, anything else as ``v.get_value()``, and
all are replaced with ``v.set_value(x)`` (flax/nnx/variablelib.py, 0.12.8).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, attribute, contents, operation
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import Statement, run
from nnx_migrate.edit.syntax import cst
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item

RULE = "module-api"

_CREATORS = ("arange", "array", "asarray", "empty", "eye", "full", "linspace", "ones", "zeros")
_ARRAYS = frozenset(
    f"jax.numpy.{name}"
    for name in (*_CREATORS, "empty_like", "full_like", "ones_like", "zeros_like")
)
_INITIALIZERS = ("jax.nn.initializers.", "flax.linen.initializers.", "flax.nnx.initializers.")


def makes_array(item: Item, resolve: Callable[[ast.expr], str | None]) -> bool:
    """Whether the initialiser of a variable is plainly one that gives an array."""
    init = item.init
    if isinstance(init, ast.Lambda):
        return isinstance(init.body, ast.Call) and resolve(init.body.func) in _ARRAYS
    if isinstance(init, ast.Call):  # ``nn.initializers.normal(0.1)``
        return (resolve(init.func) or "").startswith(_INITIALIZERS)
    symbol = (resolve(init) or "") if init is not None else ""
    return symbol in _ARRAYS or symbol.startswith(_INITIALIZERS)


def reading(variable: ast.expr, *, array: bool) -> Replacement:
    """What becomes of ``variable.value``."""

    def make(renderer: Renderer) -> Expression:
        reference = renderer.render(variable)
        return contents(reference) if array else call(attribute(reference, "get_value"))

    return make


def replacing(statement: ast.Assign | ast.AugAssign, target: ast.Attribute) -> Replacement:
    """What becomes of a statement that assigns to ``target``, the value of a variable.

    Raises:
        Refused: other things are assigned by the same statement.
    """
    if isinstance(statement, ast.Assign) and statement.targets != [target]:
        raise ClassRefused(
            statement,
            "a variable is assigned together with something else",
            "assign its value in a statement of its own",
            RULE,
        )

    def make(renderer: Renderer) -> Sequence[Statement]:
        value = renderer.render(statement.value)
        if isinstance(statement, ast.AugAssign):
            operator = getattr(cst, _OPERATORS.get(type(statement.op), type(statement.op).__name__))
            old = renderer.render(target)
            value = operation(old, operator, value)
        variable = renderer.render(target.value)
        return [run(call(attribute(variable, "set_value"), value))]

    return make


# LibCST's names of operators that ``ast`` names otherwise.
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Sub: "Subtract",
    ast.Mult: "Multiply",
    ast.MatMult: "MatrixMultiply",
    ast.Div: "Divide",
    ast.Mod: "Modulo",
    ast.Pow: "Power",
    ast.LShift: "LeftShift",
    ast.RShift: "RightShift",
    ast.FloorDiv: "FloorDivide",
}
