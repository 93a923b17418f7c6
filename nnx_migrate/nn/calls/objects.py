"""Python objects of a call: those that a module holds (``self.rotary = Rotary(dim)``), and its inputs."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
from flax import nnx

_CLOSED = (str, bytes, int, float, complex, type, types.ModuleType, type(None))


def copied(inputs: Any) -> Any:
    """The inputs of a trial call, in dicts and lists of its own: ``batch.pop("mask")`` changes no one else's."""
    if type(inputs) is dict:
        return {name: copied(one) for name, one in inputs.items()}
    if type(inputs) in (list, tuple):
        return type(inputs)(map(copied, inputs))
    return inputs


def tracer_holders(model: nnx.Module) -> Iterator[tuple[Any, ...]]:
    """Paths of attributes of which an object keeps values of the trace that a module was made in.

    An object that several attributes reach counts for the first.
    """
    seen: set[int] = set()
    for path, module in nnx.iter_modules(model):
        for name, value in vars(module).items():
            if _reaches_tracer(value, seen):
                yield (*path, name)


def _reaches_tracer(value: Any, seen: set[int]) -> bool:
    todo = [value]
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
