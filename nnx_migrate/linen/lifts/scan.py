"""``nn.scan``: a loop over a module, its variables stacked, shared or carried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from flax import traceback_util
from flax.core import FrozenDict, broadcast

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
from .loop import loop
from .pack import Groups, Pack
from .targets import lift_transform

traceback_util.register_exclusion(__file__)


def scan(
    target: Any,
    variable_axes: Mapping[Any, Any] = FrozenDict(),
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    split_rngs: Mapping[Any, bool] = FrozenDict(),
    in_axes: Any = 0,
    out_axes: Any = 0,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    data_transform: Callable[..., Any] | None = None,
    metadata_params: Mapping[Any, Any] = {},
    methods: Any = None,
    _split_transpose: bool = False,
    check_constancy_invariants: bool = True,
) -> Any:
    """``jax.lax.scan`` of a module class, or of a function ``(module, carry, *xs)``.

    As ``flax.linen.scan`` (flax 0.12.8).

    Args:
      target: a module class whose ``__call__(carry, *xs)`` gives ``(carry, ys)``, or such a
        function of a module.
      variable_axes: the axis along which the variables of each collection are stacked, one slice
        for each step. ``In(axis)`` and ``Out(axis)`` stack on the way in or out only.
      variable_broadcast: collections that all steps share; they must not depend on the loop.
      variable_carry: collections that each step hands to the next.
      split_rngs: for each key name, whether it differs from step to step.
      in_axes: a prefix of ``xs``: the axis to scan along, or ``nn.broadcast``.
      out_axes: the same of ``ys``.
      length: number of steps, needed if nothing is scanned.
      reverse: from the last step to the first.
      unroll: steps in one iteration of the compiled loop.
      data_transform: ``(groups of variables, groups of keys)`` to the same, in each step.
      metadata_params: what boxes of variables (``nn.Partitioned``) are told of the stacked axis.
      methods: methods of a class to lift instead of ``__call__``.
      check_constancy_invariants: whether to trace once more to check what is broadcast, and to
        make it.

    Returns:
      A class (named ``Scan...``), or a function, of the same signature.

    Raises:
      ValueError: lengths differ or are unknown, or what is broadcast depends on the loop.
    """
    return lift_transform(
        _scan,
        target,
        variable_axes=variable_axes,
        variable_broadcast=variable_broadcast,
        variable_carry=variable_carry,
        split_rngs=split_rngs,
        in_axes=in_axes,
        out_axes=out_axes,
        length=length,
        reverse=reverse,
        unroll=unroll,
        _split_transpose=_split_transpose,
        data_transform=data_transform,
        metadata_params=metadata_params,
        check_constancy_invariants=check_constancy_invariants,
        methods=methods,
    )


def scan_scopes(
    fn: Callable[..., Any],
    variable_axes: Mapping[Any, Any] = FrozenDict(),
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    split_rngs: Mapping[Any, bool] = FrozenDict(),
    in_axes: Any = 0,
    out_axes: Any = 0,
    length: int | None = None,
    data_transform: Callable[..., Any] | None = None,
    metadata_params: Any = None,
    check_constancy_invariants: bool = True,
    **options: Any,
) -> Callable[..., Any]:
    """The scan of ``fn(scopes, carry, *xs) -> (carry, ys)``."""
    inward, outward = in_and_out(variable_axes)
    read, read_axes = filters_and_values(inward)
    write_filters, written_axes = filters_and_values(outward)
    key_filters, splits = filters_and_values(split_rngs)
    key_axes = tuple(0 if split else broadcast for split in splits)
    lifted_filters = (variable_broadcast, variable_carry)

    def run_scan(scopes: Any, init: Any, *args: Any, **kwargs: Any) -> Any:
        warn_of_kwargs("scan", kwargs)
        pack = Pack(
            scopes,
            (*lifted_filters, *read),
            (*lifted_filters, *write_filters),
            key_filters,
            "scan",
        )
        steps = _steps(in_axes, args, length)
        keys = split_keys(
            pack.rngs, splits, lambda key: jax.random.split(jax.random.clone(key), steps)
        )
        body = loop(
            _step(pack, fn, data_transform),
            in_axes=(read_axes, key_axes, in_axes),
            out_axes=(out_axes, written_axes),
            check_constancy=check_constancy_invariants,
            length=length,
            **options,
        )
        broadcast_trees, carry_trees, *stacks = pack.variables
        broadcast_trees, (carry_trees, carry), (ys, stacks) = body(
            broadcast_trees,
            (carry_trees, init),
            without_axes(stacks, read_axes, metadata_params),
            keys,
            args,
        )
        pack.publish(
            (
                broadcast_trees,
                carry_trees,
                *with_axes(stacks, written_axes, metadata_params),
            )
        )
        return carry, ys

    return run_scan


def _scan(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return scan_scopes(fn, **options)


_scan.__name__ = "scan"


def _steps(in_axes: Any, args: Any, length: int | None) -> int:
    sizes = jax.tree.map(lambda a, x: () if a is broadcast else size_along(a, x), in_axes, args)
    return one_size(
        sizes,
        length,
        differ="Inconsistent scan lengths",
        missing="length should be specified manually.",
    )


def _step(
    pack: Pack, fn: Callable[..., Any], data_transform: Callable[..., Any] | None
) -> Callable[..., Any]:
    """One step as a pure function of the variables that are shared, carried and stacked."""

    def step(broadcast_trees: Any, carry: Any, stacks: Groups, keys: Groups, args: Any) -> Any:
        carry_trees, value = carry
        variables: Any = (broadcast_trees, carry_trees, *stacks)
        if data_transform is not None:
            variables, keys = data_transform(variables, keys)
        (value, y), (shared_out, carry_trees, *variables_out) = pack.run(
            fn, variables, keys, value, *args
        )
        # What is shared but cannot be written has to reach the steps too.
        for variables_in, made in zip(broadcast_trees, shared_out, strict=True):
            for name in variables_in:
                made.setdefault(name, variables_in[name])
        return shared_out, (carry_trees, value), (y, tuple(variables_out))

    return step
