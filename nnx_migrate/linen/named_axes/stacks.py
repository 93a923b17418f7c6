"""Lifts that name the axis they add to variables (flax 0.12.8, linen/partitioning.py)."""

from collections.abc import Callable, Mapping
from typing import Any

from flax.core import FrozenDict
from flax.core.scope import CollectionFilter, PRNGSequenceFilter, union_filters
from flax.typing import InOutAxis, InOutScanAxis

from nnx_migrate.linen.lifts.remat import remat_scopes
from nnx_migrate.linen.named_axes.metadata import AxisMetadata, map_metadata, map_names
from nnx_migrate.linen.named_axes.variables import innermost
from nnx_migrate.linen.transforms import lift_transform, map_variables, scan, vmap

_NONE: Mapping[Any, Any] = FrozenDict()


def is_mutable(axis_col: str) -> bool:
    """Whether the call that runs may change the collection; True where none runs."""
    module = innermost()
    return bool(module.is_mutable_collection(axis_col)) if module else True


def add_axis_to_metadata(
    fn: Any, axis_pos: Any, axis_name: str, axis_col: str = "params_axes"
) -> Any:
    """Lift ``fn``, whose records lack an axis, so that they have ``axis_name`` at ``axis_pos``.

    Args:
      fn: a module class, or a function that takes a module first.
      axis_pos: a number, or ``In`` or ``Out`` of one.
      axis_col: the collection of the records.

    Raises:
      ValueError: when called with records that lack the name there.
    """
    at = getattr(axis_pos, "axis", axis_pos)

    def insert(names: tuple[Any, ...]) -> tuple[Any, ...]:
        entries = list(names)
        entries.insert(at, axis_name)
        return tuple(entries)

    def remove(names: tuple[Any, ...]) -> tuple[Any, ...]:
        entries = list(names)
        if entries[at] != axis_name:
            raise ValueError(
                f"Expected axis {axis_name} at position {at} in axis metadata {entries}."
            )
        entries.pop(at)
        return tuple(entries)

    def rename_collections(rename: Callable[[tuple[Any, ...]], Any]) -> Callable[[Any], Any]:
        def of_record(record: AxisMetadata) -> AxisMetadata:
            return AxisMetadata(map_names(rename, record.names))

        return lambda tree: map_metadata(of_record, tree)

    return map_variables(
        fn,
        axis_col,
        mutable=is_mutable(axis_col),
        trans_in_fn=rename_collections(remove),
        trans_out_fn=rename_collections(insert),
    )


def scan_with_axes(
    target: Any,
    variable_axes: Mapping[CollectionFilter, InOutScanAxis] = _NONE,
    variable_broadcast: CollectionFilter = False,
    variable_carry: CollectionFilter = False,
    split_rngs: Mapping[PRNGSequenceFilter, bool] = _NONE,
    in_axes: Any = 0,
    out_axes: Any = 0,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    axis_name: str = "layers",
    axes_collections: tuple[str, ...] = ("params",),
    data_transform: Callable[..., Any] | None = None,
    methods: Any = None,
) -> Any:
    """``scan`` that names the axis of stacked variables in their records.

    Args:
      target: a module class, or a function that takes a module first.
      axis_name: the name of the new axis.
      axes_collections: the collections whose records get it, where ``variable_axes`` stacks them.
    """
    records = tuple(f"{collection}_axes" for collection in axes_collections)
    lifted = scan(
        target,
        variable_axes=variable_axes,
        variable_broadcast=union_filters(variable_broadcast, records),
        variable_carry=variable_carry,
        split_rngs=split_rngs,
        in_axes=in_axes,
        out_axes=out_axes,
        length=length,
        reverse=reverse,
        unroll=unroll,
        data_transform=data_transform,
        methods=methods,
    )
    for collection in axes_collections:
        if collection in variable_axes:
            axis = variable_axes[collection]
            lifted = add_axis_to_metadata(lifted, axis, axis_name, f"{collection}_axes")
    return lifted


def vmap_with_axes(
    target: Any,
    variable_axes: Mapping[CollectionFilter, InOutAxis],
    split_rngs: Mapping[PRNGSequenceFilter, bool] = _NONE,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
    partitioning_axis_names: Mapping[Any, str] = _NONE,
    spmd_axis_name: str | None = None,
    methods: Any = None,
) -> Any:
    """``vmap`` that names the axis of stacked variables in their records.

    Args:
      target: a module class, or a function that takes a module first.
      partitioning_axis_names: the name of the new axis, by collection.
    """
    axes: dict[Any, Any] = dict(variable_axes)
    axes |= {f"{collection}_axes": None for collection in partitioning_axis_names}
    lifted = vmap(
        target,
        variable_axes=axes,
        split_rngs=split_rngs,
        in_axes=in_axes,
        out_axes=out_axes,
        axis_size=axis_size,
        axis_name=axis_name,
        spmd_axis_name=spmd_axis_name,
        methods=methods,
    )
    for collection, axis in axes.items():
        if collection in partitioning_axis_names:
            name = partitioning_axis_names[collection]
            lifted = add_axis_to_metadata(lifted, axis, name, f"{collection}_axes")
    return lifted


def core_remat_static(
    fn: Callable[..., Any],
    variables: Any = True,
    rngs: Any = True,
    concrete: bool = False,
    prevent_cse: bool = True,
    static_argnums: Any = (),
    policy: Any = None,
) -> Callable[..., Any]:
    """``jax.checkpoint`` of a function ``(scopes, *args)``; ``static_argnums`` count ``args``.

    Static arguments need not be hashable.
    """
    static_positions = frozenset(static_argnums)

    def run(scopes: Any, *args: Any) -> Any:
        def body(scopes: Any, *arguments: Any) -> Any:
            left = iter(arguments)
            return fn(
                scopes, *(x if at in static_positions else next(left) for at, x in enumerate(args))
            )

        lifted = remat_scopes(
            body, variables, rngs, concrete=concrete, prevent_cse=prevent_cse, policy=policy
        )
        return lifted(scopes, *(x for at, x in enumerate(args) if at not in static_positions))

    return run


def remat(
    target: Any,
    variables: Any = True,
    rngs: Any = True,
    concrete: bool = False,
    prevent_cse: bool = True,
    static_argnums: Any = (),
    policy: Any = None,
    methods: Any = None,
) -> Any:
    """``remat`` of a module class or function, whose ``static_argnums`` do not count the module."""
    return lift_transform(
        core_remat_static,
        target,
        variables=variables,
        rngs=rngs,
        concrete=concrete,
        prevent_cse=prevent_cse,
        static_argnums=static_argnums,
        policy=policy,
        methods=methods,
    )
