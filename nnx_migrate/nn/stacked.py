"""Classes and factories whose instances hold the variables of several layers, and call them all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .factory import Factory
from .methods import lift_factory
from .stacking import Stacking, build_stacked, construct_stacked

Run = Callable[..., Any]  # (module, method of one layer, *arguments of the call)


def stacked_class(kind: type[Any], prefix: str, stacking: Stacking, run: Run) -> type[Any]:
    """A subclass ``<prefix><kind>`` that constructs all layers and whose call is ``run``."""

    @functools.wraps(kind.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct_stacked(self, kind, stacking, args, kwargs)

    return _subclass(kind, prefix, stacking, run, {"__init__": __init__})


def stacked_factory(
    factory: Factory[Any, Any], prefix: str, stacking: Stacking, run: Run
) -> Factory[Any, Any]:
    """The same for built-in layers."""

    def make(*args: Any, **kwargs: Any) -> Any:
        return build_stacked(prefix + factory.linen_name, factory, factory, stacking, args, kwargs)

    return lift_factory(factory, prefix, make, lambda kind: _subclass(kind, prefix, stacking, run))


def _subclass(
    kind: type[Any], prefix: str, stacking: Stacking, run: Run, own: dict[str, Any] | None = None
) -> type[Any]:
    @functools.wraps(kind.__call__)
    def __call__(self: Any, *args: Any) -> Any:
        return run(self, kind.__call__, *args)

    body = {
        **(own or {}),
        "__call__": __call__,
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "_stacking": stacking,
    }
    return type(prefix + kind.__name__, (kind,), body)
