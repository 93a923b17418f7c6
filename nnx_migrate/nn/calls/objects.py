"""What objects that NNX does not look into hold: ``self.rotary = Rotary(dim)`` with a table in it."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any

import jax
from flax import nnx

_CLOSED = (str, bytes, int, float, complex, type, types.ModuleType, type(None))


def holds_tracer(model: nnx.Module) -> bool:
    """Whether an object in a module that was made in a trace keeps values of that trace."""
    seen: set[int] = set()
    todo = [value for _, module in nnx.iter_modules(model) for value in vars(module).values()]
    while todo:
        value = todo.pop()
        if isinstance(value, jax.core.Tracer):
            return True
        if id(value) in seen or isinstance(value, (*_CLOSED, nnx.Variable, nnx.Module)):
            continue
        seen.add(id(value))
        todo.extend(_parts(value))
    return False


def _parts(value: Any) -> Iterable[Any]:
    match value:
        case Mapping():
            return list(value.values())
        case list() | tuple() | set() | frozenset():
            return value
        case functools.partial():
            return (value.func, *value.args, *value.keywords.values())
        case types.MethodType():
            return (value.__self__,)
        case types.FunctionType():
            cells = [one for one in value.__closure__ or () if one != types.CellType()]
            return (*(one.cell_contents for one in cells), *(value.__defaults__ or ()))
    return list(getattr(value, "__dict__", {}).values())
