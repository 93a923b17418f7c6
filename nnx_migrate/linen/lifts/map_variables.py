"""``nn.map_variables`` and ``nn.add_metadata_axis``: a module over changed views of its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flax import traceback_util
from flax.core import FrozenDict, meta, unfreeze
from flax.core.scope import is_filter_empty, subtract_filters

from .pack import Pack
from .targets import lift_transform

traceback_util.register_exclusion(__file__)


def _same(tree: Any) -> Any:
    return tree


def map_variables(
    target: Any,
    mapped_collections: Any = True,
    trans_in_fn: Callable[..., Any] = _same,
    trans_out_fn: Callable[..., Any] = _same,
    init: bool = False,
    mutable: bool = False,
    rngs: Any = True,
    variables: Any = True,
    methods: Any = None,
) -> Any:
    """A module class, or a function of a module, that sees some collections changed.

    As ``flax.linen.map_variables`` (flax 0.12.8).

    Args:
      target: a module class or a function of a module.
      mapped_collections: the collections to change.
      trans_in_fn: from the collections as they are stored (by name) to those that are seen.
      trans_out_fn: the reverse, of what was made or changed.
      init: whether the function may make variables: it is then run once to make them as it sees
        them, and again on the view of what ``trans_out_fn`` stores.
      mutable: whether it may change them.
      rngs: names of the keys it may see.
      variables: other collections it may see.
      methods: methods of a class to lift instead of ``__call__``.

    Returns:
      A class (named ``Map_variables...``), or a function, of the same signature.
    """
    return lift_transform(
        _map_variables,
        target,
        mapped_collections,
        trans_in_fn,
        trans_out_fn,
        init,
        mutable,
        rngs,
        variables,
        methods=methods,
    )


def add_metadata_axis(
    target: Any,
    variable_axes: Mapping[Any, Any] = FrozenDict(),
    metadata_params: Mapping[Any, Any] = {},
) -> Any:
    """Names an axis in the boxes (``nn.Partitioned``) of variables that is there already.

    As ``flax.linen.add_metadata_axis`` (flax 0.12.8): what ``scan`` and ``vmap`` do to boxes,
    without lifting.

    Args:
      target: a module class or a function of a module.
      variable_axes: for each collection the position of the axis.
      metadata_params: what the boxes are told, e.g. ``{nn.PARTITION_NAME: "layers"}``.
    """

    def view(axis: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        params: Any = metadata_params
        return (
            lambda tree: meta.remove_axis(tree, axis, params),
            lambda tree: meta.add_axis(tree, axis, params),
        )

    for collection, axis in variable_axes.items():
        target = map_variables(target, collection, *view(axis), mutable=True)
    return target


def _map_variables(
    fn: Callable[..., Any],
    mapped_filter: Any,
    trans_in_fn: Callable[..., Any],
    trans_out_fn: Callable[..., Any],
    init: bool,
    mutable: bool,
    rngs: Any,
    variables: Any,
) -> Callable[..., Any]:
    writable = init or mutable
    reads = (mapped_filter, variables)
    writes = reads if writable else (False, subtract_filters(variables, mapped_filter))
    mutable_filter: Any = True if writable else subtract_filters(True, mapped_filter)

    def call(scopes: Any, *args: Any, **kwargs: Any) -> Any:
        pack = Pack(scopes, reads, writes, (rngs,), "map_variables")
        variables_in, others = pack.variables
        if init:
            inner, roots = pack.open((variables_in, others), pack.rngs)
            if any(not is_filter_empty(root.mutable) for root in roots):
                fn(inner, *args, **kwargs)
                variables_in = tuple(map(trans_out_fn, pack.close(roots)[0]))
        view: Any = tuple(trans_in_fn(unfreeze(tree)) for tree in variables_in)
        inner, roots = pack.open((view, others), pack.rngs, mutable=mutable_filter)
        y = fn(inner, *args, **kwargs)
        variables_out, rest = pack.close(roots)
        if writable:
            variables_out = tuple(map(trans_out_fn, variables_out))
        pack.publish((variables_out, rest))
        return y

    return call


_map_variables.__name__ = "map_variables"
