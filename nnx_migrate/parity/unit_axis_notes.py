"""Mesh axes of size 1 that the logical names of a constraint stand for, in the program or not.

They split nothing, and ``nnx_migrate.sharding`` leaves them out; jax itself forgets them under
``vmap``. On a mesh that uses them they would split. While ``note_unit_axes`` lasts they are in the name
stack of every constraint by logical names, which no lift loses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import jax
from flax.linen import spmd as linen_spmd

from nnx_migrate.linen import spmd as lazy_spmd
from nnx_migrate.sharding import constraints
from nnx_migrate.sharding.placing import ambient_mesh, apply_spec
from nnx_migrate.sharding.resolve import axis_sizes, mesh_axes, resolve_spec

_NAME = "nnx_migrate_unit_axes"
_NOTE = re.compile(rf"{_NAME}=([^/()]*)")


@contextmanager
def note_unit_axes() -> Iterator[None]:
    """Note them at every constraint of Linen, lazy modules and NNX. Not for concurrent use."""
    specs: list[Any] = []  # the last spec that was resolved, until an array is placed by it

    def resolve(names: Any, rules: Any, mesh: Any) -> Any:
        specs[:] = [resolve_spec(names, rules)]
        return resolve_spec(names, rules, mesh)

    def place(x: Any, mesh: Any, *rest: Any) -> Any:
        return _with_note(apply_spec, specs.pop() if specs else None, mesh, x, mesh, *rest)

    def constrain(by: Callable[..., Any]) -> Callable[..., Any]:
        def constrain_with_note(x: Any, spec: Any, mesh: Any = None) -> Any:
            where = ambient_mesh() if mesh is None else mesh
            return _with_note(by, spec, where, x, spec, mesh)

        return constrain_with_note

    with (
        mock.patch.object(constraints, "resolve_spec", resolve),
        mock.patch.object(constraints, "apply_spec", place),
        _patch_constraint(linen_spmd, constrain),
        _patch_constraint(lazy_spmd, constrain),
    ):
        yield


def _patch_constraint(
    module: Any, constrain: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Any:
    name = "_with_sharding_constraint"
    return mock.patch.object(module, name, constrain(vars(module)[name]))


def _with_note(call: Callable[..., Any], spec: Any, mesh: Any, *args: Any) -> Any:
    """The call, with the axes of size 1 that a spec names in its name stack."""
    if spec is None or mesh is None:
        return call(*args)
    sizes = axis_sizes(mesh)
    axes = [axis for entry in spec for axis in mesh_axes(entry) if sizes.get(axis) == 1]
    with jax.named_scope(f"{_NAME}={'+'.join(axes)}"):
        return call(*args)


def unit_axes_of(stack: str) -> tuple[str, ...] | None:
    """The axes that a name stack notes last; None without a note."""
    found = _NOTE.findall(stack)
    return tuple(filter(None, found[-1].split("+"))) if found else None


def is_note(step: str) -> bool:
    """Whether a step of a name stack is a note, and no module."""
    return step.startswith(_NAME)
