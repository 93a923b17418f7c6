"""Sizes for a class that is only known at run time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def sized(build: Callable[..., T], **sizes: Any) -> Callable[..., T]:
    """``build`` with those of ``sizes`` that it takes.

    Args:
      build: a class, a factory of :mod:`nnx_migrate.nn.building.factory`, a function, or a
        ``functools.partial`` of one.
      sizes: what some class needs that may stand in its place.
    """
    target = build
    while isinstance(target, functools.partial):
        target = target.func
    function = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
    parameters = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return functools.partial(build, **sizes)
    return functools.partial(build, **{key: sizes[key] for key in sizes.keys() & parameters.keys()})
