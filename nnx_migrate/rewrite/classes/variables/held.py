"""What ``variable.value`` becomes: how a method reads and replaces the value of a variable.

Linen's variable holds any value, None and containers too, and an assignment replaces it whole.
``v[...]`` of NNX reads arrays only, and ``v[...] = x`` keeps the old shape and dtype, so an array is
read as ``v[...]`` where its initialiser shows that it is one, anything else as ``v.get_value()``, and
all are replaced with ``v.set_value(x)`` (flax/nnx/variablelib.py, 0.12.8).
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.render import Renderer, Replacement

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


def reading(variable: ast.expr, *, array: bool, named: bool = False) -> Replacement:
    """The text of ``variable.value``, constrained if the variable is one of ``named`` axes."""
    if named:
        return lambda renderer: f"nnm.constrained_value({renderer.render(variable)})"
    suffix = "[...]" if array else ".get_value()"
    return lambda renderer: renderer.render(variable) + suffix


def replacing(
    statement: ast.Assign | ast.AugAssign, target: ast.Attribute, *, named: bool = False
) -> Replacement:
    """The text of a statement that assigns to ``target``, the value of a variable.

    Args:
        named: whether Linen constrains the value by the names of its axes.

    Raises:
        Refused: other things are assigned by the same statement.
    """
    if isinstance(statement, ast.Assign) and statement.targets != [target]:
        raise Refused(
            statement,
            "a variable is assigned together with something else",
            "assign its value in a statement of its own",
            RULE,
        )

    def text(renderer: Renderer) -> str:
        value = renderer.render(statement.value)
        if isinstance(statement, ast.AugAssign):
            value = f"{renderer.render(target)} {_OPERATORS[type(statement.op)]} ({value})"
        variable = renderer.render(target.value)
        if named:
            return f"nnm.set_constrained_value({variable}, {value})"
        return f"{variable}.set_value({value})"

    return text


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.MatMult: "@",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
    ast.FloorDiv: "//",
}
