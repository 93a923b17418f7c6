"""What stands for a variable that the caller of `apply` did not give: an error when it is used.

Linen looks a variable up when the call reaches it, so a method may be applied to the variables of its
part of the model alone (``model.apply({"params": {"encoder": ...}}, x, method="encode")``; flax 0.12.8:
core/scope.py, ``Scope.get_variable``). An NNX module holds all its variables from the start.
"""

from __future__ import annotations

from typing import Any, NoReturn

_USES = [
    "abs",
    "add",
    "and",
    "array",
    "bool",
    "call",
    "complex",
    "contains",
    "divmod",
    "eq",
    "float",
    "floordiv",
    "ge",
    "getitem",
    "gt",
    "index",
    "int",
    "invert",
    "iter",
    "jax_array",
    "le",
    "len",
    "lshift",
    "lt",
    "matmul",
    "mod",
    "mul",
    "ne",
    "neg",
    "next",
    "or",
    "pos",
    "pow",
    "radd",
    "rand",
    "rdivmod",
    "rfloordiv",
    "rlshift",
    "rmatmul",
    "rmod",
    "rmul",
    "ror",
    "round",
    "rpow",
    "rrshift",
    "rshift",
    "rsub",
    "rtruediv",
    "rxor",
    "setitem",
    "sub",
    "truediv",
    "xor",
]


class Missing:
    """A variable's value that is not there.

    Raises:
      ValueError: on any use as an array: arithmetic, indexing, conversion, a public attribute.
    """

    def __init__(self, message: str, kind: type[ValueError] = ValueError) -> None:
        self._message = message
        self._kind = kind

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        self._raise()

    def __hash__(self) -> int:
        return id(self)

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise self._kind(self._message)


for _name in _USES:
    setattr(Missing, f"__{_name}__", Missing._raise)


def is_missing(value: Any) -> bool:
    """Whether ``value`` stands for a variable that was not given."""
    return isinstance(value, Missing)
