"""Fields of a module that are only known in the call."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from flax import nnx

M = TypeVar("M", bound=nnx.Module)


def with_fields(module: M, **fields: Any) -> M:
    """``module`` with other values of some plain attributes, for one call.

    Linen builds ``Block(features, train)`` inside the call; here the module exists before. The
    result shares all submodules, variables and streams with ``module``, which is not changed.

    Raises:
      AttributeError: the module has no such attribute.
      ValueError: the attribute holds a submodule, a variable or an array.
    """
    view = copy.copy(module)
    for name, value in fields.items():
        if name not in vars(module):
            raise AttributeError(
                f"expected {type(module).__name__} to have the field {name!r}, found "
                f"{sorted(one for one in vars(module) if not one.startswith('_'))}"
            )
        if nnx.is_data(vars(module)[name]):
            raise ValueError(
                f"{type(module).__name__}.{name} holds data: expected a plain attribute to set"
            )
        setattr(view, name, value)
    return view
