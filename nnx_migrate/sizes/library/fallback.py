"""What is said about calls without a summary of their own."""

from __future__ import annotations

import ast
from collections.abc import Callable

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Partial, Static, Unknown, Value
from nnx_migrate.sizes.frames import Function
from nnx_migrate.sizes.library_call import LibraryCall
from nnx_migrate.sizes.lists import lose_arguments
from nnx_migrate.sizes.statics import static_of
from nnx_migrate.source.changes import CHANGING_OPERATORS


def unknown_result(call: LibraryCall) -> Value:
    """Nothing is known of what the call returns."""
    package, _, name = call.symbol.rpartition(".")
    root = package.partition(".")[0]
    arguments = (*call.args, *call.kwargs.values())
    if root in _NO_MODULES and not call.symbol.startswith(_CHANGES):
        # What they call may: ``map(partial(heapq.heappush, widths), (2, 1))``.
        arguments = tuple(one for one in arguments if isinstance(one, Partial | Function))
    lose_arguments(arguments, call.frame)
    is_own = call.interpreter.project.split(call.symbol)[0] is not None  # ``REGISTRY.build``
    may_be_module = is_own or (name[:1].isupper() and root not in _NO_MODULES)
    if is_own:
        call.interpreter.known_callees[id(call.node)] = False
    made_by = ast.unparse(call.node.func) if may_be_module else ""
    is_draw = call.symbol.startswith(("random.", "numpy.random."))
    reason = f"{call.symbol} is not modelled"
    return Unknown(reason, made_by=made_by, is_foreign=not is_own, is_draw=is_draw)


# Of packages whose other functions change nothing that they are given.
_CHANGES = (
    *("builtins.list.", "builtins.dict.", "builtins.set."),  # ``list.append(widths, 3)``
    "numpy.random.",
    *(f"operator.{name}" for name in CHANGING_OPERATORS),
)


# Packages of whose classes none is a Linen module: ``tfb.Shift(mean)(tfb.Scale(scale))``.
_NO_MODULES = frozenset(
    (
        *("builtins", "collections", "dataclasses", "functools", "typing"),
        *("chex", "distrax", "einops", "jax", "numpy", "numpyro", "optax", "scipy"),
        "tensorflow_probability",
    )
)


# Two calls of these give two results, or change what they are given.
_IMPURE = (
    *(
        f"builtins.{name}"
        for name in ("iter", "next", "map", "filter", "open", "input", "id", "object")
    ),
    *_CHANGES,
    *("random.", "time.", "secrets.", "uuid.", "itertools.", "tempfile."),
)


def static_call(call: LibraryCall) -> Value:
    """A pure function of static values is static."""
    if call.symbol.startswith(_IMPURE):
        return unknown_result(call)
    parts = [static_of(one) for one in call.args]
    named = {key: static_of(one) for key, one in call.kwargs.items()}
    if any(p is None for p in parts) or any(p is None for p in named.values()):
        return Unknown(f"{call.symbol} of unknown values")
    spelled = ast.unparse(call.node.func)
    if (
        call.symbol.startswith("builtins.")
        or call.frame.scope.module is call.interpreter.root.info.module
    ):
        made = ast.Call(
            ast.parse(spelled, mode="eval").body,
            [p.node for p in parts if p],
            [ast.keyword(key, p.node) for key, p in named.items() if p],
        )
        return _fold(call, Static(Expr(made)), [p for p in parts if p])
    return Static(ex.name(f"{ex.FOREIGN}{spelled}"))


_FOLD: dict[str, Callable[..., object]] = {
    "builtins.int": int,
    "builtins.len": len,
    "builtins.max": max,
    "builtins.min": min,
    "builtins.sum": sum,
    "builtins.abs": abs,
    "builtins.round": round,
    "builtins.str": str,
    "builtins.tuple": tuple,
}


def _fold(call: LibraryCall, value: Static, parts: list[Expr]) -> Value:
    function = _FOLD.get(call.symbol)
    if function is None or call.kwargs or not all(part.is_constant for part in parts):
        return value
    try:
        result = function(*(part.constant for part in parts))
    except (TypeError, ValueError):
        return Unknown("a builtin that would fail")
    return Static(ex.literal(result)) if isinstance(result, int | float | str | tuple) else value
