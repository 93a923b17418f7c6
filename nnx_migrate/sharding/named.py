"""NamedShardings of a state: in its Variables (to zip with it), or bare (for jit)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import jax
import numpy as np
from flax import nnx
from flax.core.spmd import get_logical_axis_rules
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding.annotations import Annotation, annotation, frozen_rules
from nnx_migrate.sharding.fitting import Misfit, fitted, with_entries
from nnx_migrate.sharding.resolve import Rules, resolve_spec

T = TypeVar("T")

log = logging.getLogger(__name__)


def construct_named_sharding(
    state: T,
    mesh: Mesh | AbstractMesh,
    rules: Rules | None = None,
    *,
    misfit: Misfit = "raise",
    missing: Literal["replicate", "raise"] = "replicate",
) -> T:
    """The state with a NamedSharding in place of every array: same Variables, same tree.

    The result zips with ``state`` in ``jax.tree.map`` over several trees, and is an
    ``in_shardings`` of ``jax.jit`` for it. Per variable (MaxText's #4205, made whole):

    1. The names are the first of the metadata ``out_sharding``, ``sharding_names``, ``sharding``,
       ``logical_axes`` that says something. A NamedSharding or PartitionSpec there is resolved
       already and stays as it is. A stacking axis that the variable records is inserted where the
       names lack it (:mod:`nnx_migrate.sharding.scan_axis`).
    2. Rules are the variable's own (``sharding_rules``), then ``rules``. Names are resolved by
       :func:`resolve_spec`; if there are no rules at all, names are mesh axes.
    3. A composite value (a quantised tensor) gets one sharding per array in it: arrays of its
       highest rank get the spec, without the dimensions in which they have size 1; arrays of lower
       rank are replicated. A value without arrays (``optax.MaskedNode``) stays as it is.
    4. The memory kind of an array is kept when it is not the devices' default.

    Missing is not replicated: arrays without names get ``P()`` because jit needs something, and
    parameters among them (and arrays without a Variable, unless scalar) are logged;
    :func:`unannotated` lists all of them.

    Args:
      state: concrete or abstract: nnx.State, a module, an ``nnx.Optimizer``, or any tree of
        Variables and arrays.
      mesh: its devices, or an AbstractMesh.
      rules: pairs (name, mesh axes). Without: the context's, set with Linen's or NNX's
        ``logical_axis_rules``.
      misfit: what to do with names beyond an array's rank and with sizes that the mesh axes do not
        divide: "raise", or "drop" the names and replicate the dimensions.
      missing: "raise" refuses parameters without names.

    Raises:
      ValueError: names that do not fit, a stacking axis that is not where it is recorded, a name
        given twice; or parameters without names when ``missing`` is "raise".
      TypeError: a leaf that is no array, or a variable with ``hijax=True``.
    """
    resolver = _resolver(mesh, rules, misfit)
    leaves, treedef = jax.tree.flatten(state, is_leaf=_is_variable)
    shardings, bare = [], []
    for position, leaf in enumerate(leaves):
        try:
            sharding, has_names = resolver.leaf(leaf)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{_paths(state)[position]}: {error}") from error
        shardings.append(sharding)
        if not has_names and _should_have_names(leaf):
            bare.append(position)
    if bare:
        _report_missing([_paths(state)[position] for position in bare], missing)
    result: T = jax.tree.unflatten(treedef, shardings)
    return result


def extract_named_sharding(tree: Any) -> Any:
    """The bare NamedShardings of :func:`construct_named_sharding`'s result, in the same containers.

    Every Variable is replaced by what it holds; a composite value stays a composite of shardings.

    Raises:
      TypeError: a leaf is not a NamedSharding.
    """

    def bare(leaf: Any) -> Any:
        value = leaf.get_raw_value() if isinstance(leaf, nnx.Variable) else leaf
        for part in jax.tree.leaves(value):
            if not isinstance(part, NamedSharding):
                raise TypeError(
                    f"expected NamedShardings, as construct_named_sharding gives them, found "
                    f"{type(part).__name__}"
                )
        return value

    return jax.tree.map(bare, tree, is_leaf=_is_variable)


def unannotated(state: Any) -> tuple[str, ...]:
    """Paths of the arrays that carry no names, in tree order (``layers_0/Dense_0/bias``)."""
    leaves = jax.tree.leaves(state, is_leaf=_is_variable)
    return tuple(
        path
        for path, leaf in zip(_paths(state), leaves, strict=True)
        if jax.tree.leaves(leaf)
        and not (
            isinstance(leaf, nnx.Variable) and annotation(leaf.get_metadata()).names is not None
        )
    )


def shardings_of_value(
    value: Any, notes: Annotation, mesh: Mesh | AbstractMesh, misfit: Misfit = "raise"
) -> Any:
    """Shardings of the arrays of one variable's value by the context's rules, in its containers."""
    return _resolver(mesh, None, misfit).value(value, notes)


def _resolver(mesh: Mesh | AbstractMesh, rules: Rules | None, misfit: Misfit) -> _Resolver:
    context = get_logical_axis_rules() if rules is None else rules
    return _Resolver(mesh, frozen_rules(context), misfit)


@dataclass(frozen=True)
class _Resolver:
    """Shardings of single leaves, for one mesh and one list of rules.

    ``cache`` holds what equal annotations of equal shapes gave: a model has few of them.
    """

    mesh: Mesh | AbstractMesh
    rules: tuple[tuple[str, Any], ...]
    misfit: Misfit
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
        shape = _shape(array)
        kind = self.memory_kind(array)
        key = (shape, notes, kind, is_part)
        if key not in self.cache:
            self.cache[key] = self.resolved(shape, notes, kind, is_part)
        return self.cache[key]

    def resolved(
        self, shape: tuple[int, ...], notes: Annotation | None, kind: str | None, is_part: bool
    ) -> NamedSharding:
        names = notes.names_of(len(shape)) if notes else None
        if notes is None or names is None:
            return NamedSharding(self.mesh, PartitionSpec(), memory_kind=kind)
        if isinstance(names, NamedSharding):
            return names
        sizes = self.mesh.shape
        spec = names if isinstance(names, PartitionSpec) else self.spec(names, notes.rules)
        if is_part:
            spec = _without_size_one(spec, shape)
        return NamedSharding(self.mesh, fitted(spec, shape, sizes, self.misfit), memory_kind=kind)

    def spec(self, names: tuple[Any, ...], own: tuple[tuple[str, Any], ...]) -> PartitionSpec:
        rules = (*own, *self.rules) or tuple((axis, axis) for axis in self.mesh.axis_names)
        return resolve_spec(names, rules, self.mesh)

    def memory_kind(self, array: Any) -> str | None:
        """The memory kind of an array that was placed elsewhere than in the default memory."""
        if isinstance(array, jax.core.Tracer):
            return None
        kind = getattr(getattr(array, "sharding", None), "memory_kind", None)
        return None if kind == self.default_memory else kind

    @cached_property
    def default_memory(self) -> str:
        if isinstance(self.mesh, AbstractMesh):
            return "device"
        kind: str = self.mesh.devices.flat[0].default_memory().kind
        return kind


def _without_size_one(spec: PartitionSpec, shape: tuple[int, ...]) -> PartitionSpec:
    """Broadcast dimensions of a composite's part (scales of a quantised tensor) cannot be split."""
    entries = spec.partitions
    pairs = zip(entries, shape[: len(entries)], strict=False)
    kept = [None if size == 1 else entry for entry, size in pairs]
    return with_entries(spec, [*kept, *entries[len(shape) :]])


def _shape(array: Any) -> tuple[int, ...]:
    if hasattr(array, "shape"):
        return tuple(array.shape)
    if isinstance(array, bool | int | float | complex):
        return ()
    raise TypeError(f"expected an array or a ShapeDtypeStruct, found {type(array).__name__}")


def _should_have_names(leaf: Any) -> bool:
    """Parameters, and arrays that lost their Variable; not counters, keys and statistics."""
    if isinstance(leaf, nnx.Variable):
        return isinstance(leaf, nnx.Param)
    return _shape(leaf) != ()


def _report_missing(paths: list[str], missing: str) -> None:
    listed = f"{', '.join(paths[:10])}{', ...' if len(paths) > 10 else ''}"
    if missing == "raise":
        raise ValueError(
            f"expected logical axis names on every parameter, found {len(paths)} without: {listed}. "
            "Annotate them (out_sharding=), or pass missing='replicate'."
        )
    log.warning("parameters without logical axis names, replicated (%d): %s", len(paths), listed)


def _paths(tree: Any) -> list[str]:
    """Path of every Variable or array, in tree order."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_variable)
    return [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in found]


def _is_variable(node: Any) -> bool:
    return isinstance(node, nnx.Variable)
