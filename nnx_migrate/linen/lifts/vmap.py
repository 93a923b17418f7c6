"""``nn.vmap``: one module over a batch axis, with variables of its own for each element or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from flax import traceback_util
from flax.core import FrozenDict

from .axes import (
    filters_and_values,
    in_and_out,
    one_size,
    size_along,
    split_keys,
    warn_of_kwargs,
    with_axes,
    without_axes,
)
from .pack import Groups, Pack
from .targets import lift_transform

traceback_util.register_exclusion(__file__)


def vmap(
    target: Any,
    variable_axes: Mapping[Any, Any] = FrozenDict(),
    split_rngs: Mapping[Any, bool] = FrozenDict(),
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
    spmd_axis_name: str | None = None,
    metadata_params: Mapping[Any, Any] = {},
    methods: Any = None,
) -> Any:
    """``jax.vmap`` of a module class, or of a function that takes a module first.

    As ``flax.linen.vmap`` (flax 0.12.8).

    Args:
      target: a module class or a function of a module.
      variable_axes: the axis of the variables of each collection; None for one set of variables
        that all elements share. ``In(axis)`` and ``Out(axis)`` are for one way only.
      split_rngs: for each key name, whether it differs from element to element.
      in_axes: as of ``jax.vmap``, for the arguments without the module; so is ``out_axes``.
      axis_size: size of the axis, needed if nothing that goes in has it.
      axis_name: name of the axis for collectives.
      spmd_axis_name: mesh axis it is sharded over.
      metadata_params: what boxes of variables (``nn.Partitioned``) are told of the axis.
      methods: methods of a class to lift instead of ``__call__``.

    Returns:
      A class (named ``Vmap...``), or a function, of the same signature.

    Raises:
      ValueError: sizes of the axis differ, or the size is unknown.
    """
    return lift_transform(
        _vmap,
        target,
        variable_axes,
        split_rngs,
        in_axes=in_axes,
        out_axes=out_axes,
        axis_size=axis_size,
        axis_name=axis_name,
        spmd_axis_name=spmd_axis_name,
        metadata_params=metadata_params,
        methods=methods,
    )


def _vmap(
    fn: Callable[..., Any],
    variable_axes: Mapping[Any, Any] = FrozenDict(),
    split_rngs: Mapping[Any, bool] = FrozenDict(),
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
    spmd_axis_name: str | None = None,
    metadata_params: Any = None,
) -> Callable[..., Any]:
    inward, outward = in_and_out(variable_axes)
    read, read_axes = filters_and_values(inward)
    write_filters, written_axes = filters_and_values(outward)
    key_filters, splits = filters_and_values(split_rngs)

    def run_lanes(scopes: Any, *args: Any, **kwargs: Any) -> Any:
        warn_of_kwargs("vmap", kwargs)
        pack = Pack(scopes, read, write_filters, key_filters, "vmap")
        variables = without_axes(pack.variables, read_axes, metadata_params)
        size = one_size(
            jax.tree.map(
                lambda axis, x: () if axis is None else size_along(axis, x),
                (read_axes, in_axes),
                (variables, args),
                is_leaf=lambda x: x is None,
            ),
            axis_size,
            differ="Inconsistent batch axis sizes",
            missing="axis_size should be specified manually.",
        )
        keys = split_keys(pack.rngs, splits, _splitter(size, spmd_axis_name, in_axes, args))

        def body(variables: Groups, keys: Groups, args: Any) -> Any:
            return pack.run(fn, variables, keys, *args)

        y, out = jax.vmap(
            body,
            in_axes=(read_axes, tuple(0 if split else None for split in splits), in_axes),
            out_axes=(out_axes, written_axes),
            axis_name=axis_name,
            axis_size=axis_size,
            spmd_axis_name=spmd_axis_name,
        )(variables, keys, args)
        pack.publish(with_axes(out, written_axes, metadata_params))
        return y

    return run_lanes


_vmap.__name__ = "vmap"


def _splitter(
    size: int, spmd_axis_name: str | None, in_axes: Any, args: Any
) -> Callable[[Any], Any]:
    """Splits a key, and shards the new ones like the arguments where those are sharded."""
    is_sharded = spmd_axis_name is not None and any(
        jax.typeof(x).sharding.spec[axis] == spmd_axis_name for axis, x in _with_axis(in_axes, args)
    )

    def split(key: Any) -> Any:
        keys = jax.random.split(jax.random.clone(key), size)
        return jax.sharding.reshard(keys, jax.P(spmd_axis_name)) if is_sharded else keys

    return split


def _with_axis(axes: Any, args: Any) -> list[tuple[int, Any]]:
    """Each array that is mapped with its axis."""
    found: list[tuple[int, Any]] = []

    def visit(axis: int | None, tree: Any) -> None:
        if axis is not None:
            found.extend((axis, leaf) for leaf in jax.tree.leaves(tree))

    jax.tree.map(visit, axes, args, is_leaf=lambda x: x is None)
    return found
