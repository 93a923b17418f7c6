"""Shardings of the arrays of one leaf of a state: a Variable, or an array without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from flax import nnx
from flax.core.spmd import get_logical_axis_rules
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding.annotations import Annotation, annotation, frozen_rules
from nnx_migrate.sharding.fitting import MISFITS, Misfit, fit_spec, refuse_other_words, with_entries
from nnx_migrate.sharding.placing import default_memory, refuse_no_mesh
from nnx_migrate.sharding.resolve import Rules, resolve_spec


def shardings_of_value(
    value: Any, notes: Annotation, mesh: Mesh | AbstractMesh, misfit: Misfit = "raise"
) -> Any:
    """Shardings of the arrays of one variable's value by the context's rules, in its containers."""
    return leaf_shardings(mesh, None, misfit).value(value, notes)


def leaf_shardings(
    mesh: Mesh | AbstractMesh, rules: Rules | None, misfit: Misfit, strict: bool = False
) -> LeafShardings:
    """Shardings by ``rules``, or by the context's.

    Raises:
      TypeError: ``mesh`` is none.
      ValueError: ``misfit`` is none of its words.
    """
    refuse_no_mesh(mesh)
    refuse_other_words("misfit", misfit, MISFITS)
    context = get_logical_axis_rules() if rules is None else rules
    return LeafShardings(mesh, frozen_rules(context), misfit, strict)


@dataclass(frozen=True)
class LeafShardings:
    """Shardings of single leaves, for one mesh and one list of rules.

    ``strict`` is :func:`resolve_spec`'s. ``cache`` holds what equal annotations of equal shapes
    gave: a model has few of them.
    """

    mesh: Mesh | AbstractMesh
    rules: tuple[tuple[str, Any], ...]
    misfit: Misfit
    strict: bool = False
    cache: dict[Any, NamedSharding] = field(default_factory=dict)

    def leaf(self, leaf: Any) -> tuple[Any, bool]:
        """The leaf with shardings for arrays, and whether it had names (or no array)."""
        if not isinstance(leaf, nnx.Variable):
            return self.array(leaf, None), False
        value, metadata = leaf.get_raw_value(), leaf.get_metadata()
        if metadata["hijax"]:
            raise TypeError("expected a plain Variable, found one with hijax=True")
        notes = annotation(metadata)
        shardings = self.value(value, notes)
        named = notes.names is not None or not jax.tree.leaves(shardings)
        return type(leaf).from_metadata(shardings, metadata), named

    def value(self, value: Any, notes: Annotation) -> Any:
        """Shardings of the arrays of one variable."""
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return self.array(value, notes)
        parts = jax.tree.leaves(value)
        rank = max((np.ndim(part) for part in parts), default=0)
        return jax.tree.map(
            lambda part: self.array(part, notes if np.ndim(part) == rank else None, True), value
        )

    def array(self, array: Any, notes: Annotation | None, is_part: bool = False) -> NamedSharding:
        """The sharding of one array; size-1 dimensions of a part of a composite stay whole."""
        shape = shape_of(array)
        kind = self.memory_kind(array)
        key = (shape, notes, kind, is_part)
        if key not in self.cache:
            self.cache[key] = self.resolve(shape, notes, kind, is_part)
        return self.cache[key]

    def resolve(
        self, shape: tuple[int, ...], notes: Annotation | None, kind: str | None, is_part: bool
    ) -> NamedSharding:
        """The sharding of an array of ``shape`` with these notes (None: without any)."""
        names = notes.names_of(len(shape)) if notes else None
        if notes is None or names is None:
            return NamedSharding(self.mesh, PartitionSpec(), memory_kind=kind)

        def fit(spec: PartitionSpec, sizes: Mapping[str, int]) -> PartitionSpec:
            spec = _without_size_one(spec, shape) if is_part else spec
            return fit_spec(spec, shape, sizes, self.misfit)

        if isinstance(names, NamedSharding):
            fits = fit(names.spec, names.mesh.shape)
            return names if fits == names.spec else names.update(spec=fits)
        spec = names if isinstance(names, PartitionSpec) else self.spec(names, notes.rules)
        return NamedSharding(self.mesh, fit(spec, self.mesh.shape), memory_kind=kind)

    def spec(self, names: tuple[Any, ...], own: tuple[tuple[str, Any], ...]) -> PartitionSpec:
        """The names resolved: by rules if there are any, else as mesh axes."""
        rules = (*own, *self.rules) or tuple((axis, axis) for axis in self.mesh.axis_names)
        return resolve_spec(names, rules, self.mesh, strict=self.strict)

    def memory_kind(self, array: Any) -> str | None:
        """The memory kind of an array that was placed elsewhere than in the default memory."""
        if isinstance(array, jax.core.Tracer):
            return None
        kind = getattr(getattr(array, "sharding", None), "memory_kind", None)
        return None if kind == self.default_memory else kind

    @cached_property
    def default_memory(self) -> str:
        """The memory kind in which the mesh's devices put arrays unasked."""
        return default_memory(self.mesh)


def _without_size_one(spec: PartitionSpec, shape: tuple[int, ...]) -> PartitionSpec:
    """Broadcast dimensions of a composite's part (scales of a quantised tensor) cannot be split."""
    entries = spec.partitions
    pairs = zip(entries, shape[: len(entries)], strict=False)
    entries_with_size = [None if size == 1 else entry for entry, size in pairs]
    return with_entries(spec, [*entries_with_size, *entries[len(shape) :]])


def shape_of(array: Any) -> tuple[int, ...]:
    """Shape of an array, an abstract array or a Python number."""
    if hasattr(array, "shape"):
        return tuple(array.shape)
    if isinstance(array, bool | int | float | complex):
        return ()
    raise TypeError(f"expected an array or a ShapeDtypeStruct, found {type(array).__name__}")
