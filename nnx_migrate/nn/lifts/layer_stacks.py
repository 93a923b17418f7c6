"""Classes whose instances hold the variables of several layers, and call them all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flax import nnx

from nnx_migrate.nn.loops.stacking import Stacking, construct_stacked
from nnx_migrate.nn.variables.state import note_lift

M = TypeVar("M", bound=nnx.Module)
Run = Callable[..., Any]  # (module, method of one layer, *arguments of the call)


def require_one_layer(name: str, stacking: Stacking) -> None:
    """Refuse a lifted function that stacks variables: no constructor makes those of all layers.

    Raises:
      ValueError: there are some.
    """
    if stacking.axes:
        raise ValueError(
            f"expected {name} of a function to stack no variables, found variable_axes for "
            f"{[names for names, _ in stacking.axes]}: lift a class with the function as __call__"
        )


def stacked_class(
    kind: type[Any], prefix: str, stacking: Stacking, run: Run, groups: Sequence[Any]
) -> type[Any]:
    """A subclass ``<prefix><kind>`` that constructs all layers, and whose call is ``run``.

    Args:
      groups: collections (Linen's filters), in the order in which Linen's lift gives them back.
    """

    @functools.wraps(kind.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct_stacked(self, kind, stacking, args, kwargs)

    layer = getattr(kind, "_one_layer", kind.__call__)  # of several lifts, what the innermost calls
    body = {
        "__init__": __init__,
        "__call__": _lifted_call(kind, run, groups),
        "_one_layer": layer,
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "_stacking": stacking,
    }
    return type(prefix + kind.__name__, (kind,), body)


def _lifted_call(kind: type[Any], run: Run, groups: Sequence[Any]) -> Callable[..., Any]:
    """The call of a class through ``run``: of what subclasses may replace, ``_one_layer``."""
    method: Any = kind.__call__ if hasattr(kind, "_one_layer") else _one_layer

    @note_lift(lambda _: groups)
    @functools.wraps(kind.__call__)
    def call(self: Any, *args: Any) -> Any:
        return run(self, method, *args)

    return call


def _one_layer(module: Any, *args: Any) -> Any:
    return module._one_layer(*args)
