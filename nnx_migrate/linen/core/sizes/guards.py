"""What a call of a module refuses before it builds anything: ``if x.ndim != 4: raise ValueError(...)``.

An explicit class is built before it is called, and of inputs that it refuses its constructor may read what these
do not have. Linen raises what the call says of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import jax

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.declaration import Size
from nnx_migrate.linen.core.sizes.trials import class_of, some_value
from nnx_migrate.nn.calls.initial import called_on

_RANKS = (4, 5, 3, 2, 6)  # of inputs with which a class may be built


def refusal(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    method: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Exception | None:
    """What code of the class itself raises in a call, whatever its sizes are; None where it raises nothing.

    Args:
      make: the class with its fields.
      sizes: the arguments that it asks for beside them.
    """
    for rank in _RANKS:
        values = {name: _value(size, rank) for name, size in sizes.items()}
        try:
            model = nnm.abstract(functools.partial(make, **values))
        except Exception:  # noqa: BLE001, S112 - it is built for inputs of another rank
            continue
        try:
            jax.eval_shape(lambda model=model: called_on(method, args, kwargs)(model))
        except Exception as error:  # noqa: BLE001 - it is raised by the caller if it is the class's own
            return error if _is_of(class_of(make), error.__traceback__) else None
        return None
    return None


def _value(size: Size, rank: int) -> Any:
    value = some_value(size)
    return value[:1] * rank if isinstance(value, tuple) else value


def _is_of(cls: Any, traceback: TracebackType | None) -> bool:
    """Whether the file of a class raised an error, not a library that it calls."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    own: str = inspect.unwrap(cls.__init__).__code__.co_filename
    return traceback.tb_frame.f_code.co_filename == own
