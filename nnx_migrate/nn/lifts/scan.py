"""``linen.scan``: layers stacked along an axis, or one module run over time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from flax import nnx
from flax.core.axes_scan import broadcast  # Linen's own: Linen classes may get it
from flax.typing import In

from nnx_migrate.nn.lifts.layer_stacks import require_one_layer, stacked_class
from nnx_migrate.nn.loops.loop import Loop
from nnx_migrate.nn.loops.stacking import Stacking, options_of

__all__ = ["broadcast", "scan"]

T = TypeVar("T")


def scan(
    target: T,
    *,
    variable_axes: Mapping[Any, int | In[int]] | None = None,
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    split_rngs: Mapping[Any, bool] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    metadata_params: Mapping[Any, Any] | None = None,
    check_constancy_invariants: bool = True,
    _split_transpose: bool = False,
) -> T:
    """``target`` in a loop over layers or steps.

    Of a class: a subclass whose ``__call__(carry, *xs)`` is the loop. Of a function ``target(module,
    carry, *xs) -> (carry, ys)``: a function with the same parameters that loops over the steps of
    ``xs``, with a module that exists already, whose variables it does not stack.

    Parameters, their paths and (under :func:`nnx_migrate.nn.build`) their initial values are those
    of ``linen.scan`` (flax 0.12.8, linen/transforms.py and core/lift.py): a collection named in
    ``variable_axes`` holds one array per variable with the steps along that axis, which the body
    sees without it. The loop is one ``jax.lax.scan``; it returns only variables that the body
    changed. The class is called ``Scan<target>``, which is what automatic submodule names count.

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, or a function.
      variable_axes: collection (or several) -> axis of its stacked variables; ``flax.typing.In`` of
        an axis (Linen's ``ScanIn``) says that the body must not change them.
      variable_broadcast: collections that all steps share and none changes.
      variable_carry: collections handed from step to step.
      split_rngs: per stream, whether every step draws its own keys.
      in_axes: axis to loop over, for all of ``xs`` or for each; ``broadcast`` passes it whole.
      out_axes: axis along which each output is stacked.
      length: number of steps; needed where variables are stacked.
      metadata_params: ``{nnx.PARTITION_NAME: name}`` names the axis in the variables' metadata.
      check_constancy_invariants: Linen's option; it decides which keys initial values come from.

    Raises:
      TypeError: ``target`` is neither, or a function gets no module.
      ValueError: a variable is in none of the three groups, a shared one or an input was changed,
        the number of layers is missing, or a function has variables to stack.
    """
    if isinstance(target, functools.partial) and isinstance(target.func, type):
        options = {name: value for name, value in locals().items() if name != "target"}
        inner = scan(target.func, **options)
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    if (isinstance(target, type) and not issubclass(target, nnx.Module)) or not callable(target):
        raise TypeError(f"expected scan to get an nnx.Module class or function, found {target!r}")
    loop = _loop(**{name: value for name, value in locals().items() if name in _OPTIONS})
    if isinstance(target, type):
        groups = (variable_broadcast, variable_carry, *(variable_axes or ()))
        return cast(T, stacked_class(target, "Scan", loop.stacking, loop.run, groups))
    require_one_layer("scan", loop.stacking)
    return cast(T, _of_function(target, loop))


_OPTIONS = tuple(name for name in inspect.signature(scan).parameters if name != "target")


def _loop(
    *,
    variable_axes: Mapping[Any, int | In[int]] | None = None,
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    split_rngs: Mapping[Any, bool] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    length: int | None = None,
    metadata_params: Mapping[Any, Any] | None = None,
    check_constancy_invariants: bool = True,
    **options: Any,
) -> Loop:
    """The loop that the options of :func:`scan` describe."""
    stacking = Stacking(
        options_of(variable_axes, _axis_number),
        options_of(split_rngs, bool),
        length,
        options_of(metadata_params, lambda name: name),
        inputs=tuple(
            names for names, axis in (variable_axes or {}).items() if isinstance(axis, In)
        ),
        traces=2 if check_constancy_invariants else 1,
    )
    how = {"reverse": False, "unroll": 1, "_split_transpose": False, **options}
    return Loop(stacking, variable_broadcast, variable_carry, in_axes, out_axes, how)


def _of_function(target: Callable[..., Any], loop: Loop) -> Callable[..., Any]:
    """The loop of a function that gets its module."""

    @functools.wraps(target)
    def run_loop(module: Any, carry: Any, *xs: Any) -> tuple[Any, Any]:
        if not isinstance(module, nnx.Module):
            raise TypeError(f"expected a scanned function to get an nnx.Module, found {module!r}")
        return loop.run(module, target, carry, *xs)

    return run_loop


def _axis_number(axis: int | In[int]) -> int:
    return int(axis.axis if isinstance(axis, In) else axis)
