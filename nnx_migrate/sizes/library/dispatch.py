"""Which summary knows a library symbol."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import STARRED, Unknown, Value
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.library import (
    axes,
    contraction,
    creation,
    elementwise,
    joining,
    lifts,
    numerics,
    reshaping,
    transforms,
)
from nnx_migrate.sizes.library import (
    maps as mapped,
)
from nnx_migrate.sizes.library.builtins import BUILTINS
from nnx_migrate.sizes.library.fallback import static_call, unknown_result
from nnx_migrate.sizes.library_call import LibraryCall, Summaries
from nnx_migrate.sizes.summaries import SUMMARIES

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def call_library(
    interpreter: Interpreter,
    symbol: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """Abstract result of a library call."""
    call = LibraryCall(interpreter, symbol, args, kwargs, node, frame)
    name = symbol.rpartition(".")[2]
    if symbol in _SYMBOLS or symbol in SUMMARIES:
        handler = _SYMBOLS.get(symbol) or SUMMARIES[symbol]
        if symbol in SUMMARIES and STARRED in args:
            return Unknown(f"{symbol} of arguments in unknown number")
    elif symbol.startswith(_OF_TYPES):
        handler = unknown_result
    elif symbol.startswith("builtins."):
        handler = BUILTINS.get(name, static_call)
    elif symbol.startswith(_NUMERIC):
        table = _LAX if symbol.startswith("jax.lax.") else _ARRAYS
        handler = table.get(name, unknown_result)
    else:
        handler = static_call if _is_pure(symbol) else unknown_result
    return handler(call)


# functions by their last name, whatever numeric library they are called through
_ARRAYS: Summaries = {
    **elementwise.ARRAYS,
    **creation.ARRAYS,
    **joining.ARRAYS,
    **axes.ARRAYS,
    **reshaping.ARRAYS,
    **contraction.ARRAYS,
    **numerics.ARRAYS,
    **transforms.ARRAYS,
}
_LAX: Summaries = {
    **_ARRAYS,
    **elementwise.LAX,
    "pad": unknown_result,  # other arguments than the function of jax.numpy
    "split": unknown_result,
}
_SYMBOLS: Summaries = {
    **creation.SYMBOLS,
    **mapped.SYMBOLS,
    **numerics.SYMBOLS,
    **transforms.SYMBOLS,
    **lifts.SYMBOLS,
}
_OF_TYPES = ("builtins.list.", "builtins.dict.", "builtins.set.")  # ``list.append(widths, 3)``
_NUMERIC = ("jax.numpy.", "numpy.", "jax.lax.", "jax.nn.", "flax.linen.", "jax.scipy.", "einops.")


def _is_pure(symbol: str) -> bool:
    return symbol.startswith(("math.", "numpy.", "operator."))
