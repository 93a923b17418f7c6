"""Arrays that a module made when it was built and keeps beside its variables: a key in a ``partial``.

Of a module that has no values these are tracers of a trace that is over. The program of a call takes them as
further arguments, so it differs from Linen's from its first line on, wherever they are used.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
from flax import nnx

from nnx_migrate.parity.evaluation.linen_names import path_of_attribute

_DEPTH = 4  # of containers, functions and partials in one another


def held(module: nnx.Module) -> tuple[str, ...]:
    """Attribute paths, ``decoder/mlp/drop``, under which such a tracer is held; sorted."""
    found = set()
    for path, node in nnx.iter_graph(module):
        if isinstance(node, nnx.Module):
            for name, value in vars(node).items():
                if _holds(value, _DEPTH):
                    found.add(path_of_attribute((*path, name)))
    return tuple(sorted(found))


def _holds(value: Any, depth: int) -> bool:
    if isinstance(value, jax.core.Tracer):
        return True
    return depth > 0 and any(_holds(part, depth - 1) for part in _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    """What a container, a partial or a function closes over; a module's parts are its own."""
    if isinstance(value, nnx.Module | nnx.Variable):
        return
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.FunctionType):
        yield from _cells(value.__closure__ or ())


def _cells(cells: Iterable[types.CellType]) -> Iterator[Any]:
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # a name that was never bound
            continue
