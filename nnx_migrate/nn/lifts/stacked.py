"""Classes and factories whose instances hold the variables of several layers, and call them all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flax import nnx

from nnx_migrate.nn.building.factory import Factory
from nnx_migrate.nn.lifts.methods import lift_factory
from nnx_migrate.nn.loops.stack_axis import INDEX_KEY
from nnx_migrate.nn.loops.stacking import Stacking, build_stacked, construct_stacked, options_of
from nnx_migrate.nn.variables.parts import CAPTURES

M = TypeVar("M", bound=nnx.Module)
Run = Callable[..., Any]  # (module, method of one layer, *arguments of the call)


def stacked(
    make: Callable[..., M],
    *,
    variable_axes: Mapping[Any, int | None],
    split_rngs: Mapping[Any, bool] | None = None,
    length: int | None = None,
    axis_size: int | None = None,
    metadata_params: Mapping[Any, Any] | None = None,
    check_constancy_invariants: bool = True,
    rngs: Any,
) -> M:
    """The module that ``make(rngs=rngs)`` builds, with the variables of all its layers.

    What Linen makes of a module that it calls in a lifted function with ``variable_axes``: call it in
    ``nnm.scan(function, ...)`` or ``nnm.vmap(function, ...)`` with the same options.

    Args:
      variable_axes, split_rngs, metadata_params, check_constancy_invariants: as of these.
      length: number of layers of a scan.
      axis_size: number of lanes of a vmap, in its place.

    Raises:
      ValueError: the number of layers is missing.
    """
    axes = options_of(variable_axes, lambda axis: axis)
    stacking = Stacking(
        tuple((names, axis) for names, axis in axes if axis is not None),
        options_of(split_rngs, bool),
        length if axis_size is None else axis_size,
        options_of(metadata_params, lambda name: name),
        parallel=axis_size is not None,
        traces=2 if check_constancy_invariants and axis_size is None else 1,
    )
    module = build_stacked("the module", make, make, stacking, (), {"rngs": rngs})
    kind = type(module)
    module.__class__ = _marked(kind, stacking)
    return module


@functools.cache
def _marked(kind: type[Any], stacking: Stacking) -> type[Any]:
    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "_stacking": stacking}
    return type(kind.__name__, (kind,), body)


def check_stacked(module: nnx.Module, stacking: Stacking) -> None:
    """Check that a module which exists already holds stacked variables.

    Raises:
      ValueError: one is that of a single layer.
    """
    for path, one in nnx.to_flat_state(nnx.state(module)):
        # What nnm.apply is given comes from a call of the same stack.
        is_stacked = {INDEX_KEY, "is_given"} & {*one.get_metadata()} or CAPTURES in path
        if stacking.axis(one) is not None and not is_stacked:
            raise ValueError(
                f"expected the variable '{'/'.join(map(str, path))}' to be stacked along the axis of "
                "variable_axes, found that of one layer: build the module with nnm.stacked"
            )


def stacked_class(
    kind: type[Any], prefix: str, stacking: Stacking, runs: Mapping[str, Run]
) -> type[Any]:
    """A subclass ``<prefix><kind>`` that constructs all layers, and whose methods are ``runs``."""

    @functools.wraps(kind.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct_stacked(self, kind, stacking, args, kwargs)

    return _subclass(kind, prefix, stacking, runs, {"__init__": __init__})


def stacked_factory(
    factory: Factory[Any, Any], prefix: str, stacking: Stacking, run: Run
) -> Factory[Any, Any]:
    """The same for built-in layers."""

    def make(*args: Any, **kwargs: Any) -> Any:
        return build_stacked(prefix + factory.linen_name, factory, factory, stacking, args, kwargs)

    def lifted(kind: type[Any]) -> type[Any]:
        return _subclass(kind, prefix, stacking, {"__call__": run})

    return lift_factory(factory, prefix, make, lifted)


def _subclass(
    kind: type[Any],
    prefix: str,
    stacking: Stacking,
    runs: Mapping[str, Run],
    own: dict[str, Any] | None = None,
) -> type[Any]:
    body = {
        **(own or {}),
        **{name: _lifted(kind, name, run, alone=len(runs) == 1) for name, run in runs.items()},
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "_stacking": stacking,
    }
    return type(prefix + kind.__name__, (kind,), body)


def _lifted(kind: type[Any], name: str, run: Run, *, alone: bool) -> Callable[..., Any]:
    """The method ``name`` through ``run``; ``alone`` says that it is the only one lifted."""
    method = getattr(kind, name)

    def inside(copy: Any, *args: Any) -> Any:
        """What the method calls on its module is not lifted once more."""
        lifted, copy.__class__ = type(copy), kind
        try:
            return method(copy, *args)
        finally:
            copy.__class__ = lifted

    @functools.wraps(method)
    def call(self: Any, *args: Any) -> Any:
        return run(self, method if alone and name == "__call__" else inside, *args)

    return call
