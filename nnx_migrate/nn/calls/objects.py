"""Python objects of a call: those that a module holds (``self.rotary = Rotary(dim)``), and its inputs."""

from __future__ import annotations

import collections
import copy
import functools
import itertools
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx

_Replayable: Any = type(itertools.tee(())[0])  # copies go on by themselves
_CLOSED = (str, bytes, int, float, complex, type, types.ModuleType, type(None))


def copied(inputs: Any) -> Any:
    """The inputs of a trial call, in dicts, lists and numpy arrays of its own: ``batch.pop("mask")`` changes no one else's.

    Iterators start where those of the call are, where it can be gone through again (`replayable`).
    """
    if type(inputs) is dict:
        return {name: copied(one) for name, one in inputs.items()}
    if type(inputs) in (list, tuple):
        return type(inputs)(map(copied, inputs))
    if isinstance(inputs, tuple) and hasattr(inputs, "_make"):  # a named one
        return inputs._make(map(copied, inputs))
    if isinstance(inputs, collections.OrderedDict | collections.defaultdict):
        found = copy.copy(inputs)
        found.update((name, copied(one)) for name, one in inputs.items())
        return found
    is_own = type(inputs) is np.ndarray or isinstance(inputs, _Replayable)
    return copy.copy(inputs) if is_own else inputs


def replayable(inputs: Any) -> Any:
    """The inputs of a call with iterators of Python's that copies leave as they are: ``(one for one in batches)``.

    What holds none stays the same object.
    """
    if isinstance(inputs, Iterator) and type(inputs).__module__ in ("builtins", "itertools"):
        return itertools.tee(inputs, 1)[0]
    if type(inputs) is dict:
        found: Any = {name: replayable(one) for name, one in inputs.items()}
        return found if any(found[name] is not one for name, one in inputs.items()) else inputs
    if type(inputs) in (list, tuple):
        found = type(inputs)(map(replayable, inputs))
        is_same = all(one is other for one, other in zip(found, inputs, strict=True))
        return inputs if is_same else found
    return inputs


def tracer_holders(model: nnx.Module) -> Iterator[tuple[Any, ...]]:
    """Paths of attributes of which an object keeps values of the trace that a module was made in.

    An object that several attributes reach counts for the first.
    """
    visited_ids: set[int] = set()
    for path, module in nnx.iter_modules(model):
        for name, value in vars(module).items():
            if _reaches_tracer(value, visited_ids):
                yield (*path, name)


def _reaches_tracer(value: Any, visited_ids: set[int]) -> bool:
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, jax.core.Tracer):
            return True
        if id(value) in visited_ids or isinstance(value, (*_CLOSED, nnx.Variable, nnx.Module)):
            continue
        visited_ids.add(id(value))
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
