"""What a call sows into collections that nobody asks for: thrown away, so that no check sees it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from flax import linen, nnx

from nnx_migrate.linen.core.variables import VariableMethods
from nnx_migrate.nn.variables.variables import collection_of

_SOWERS: tuple[type, ...] = (linen.Module, nnx.Module, VariableMethods)


@contextmanager
def note_sowing(paths: set[str]) -> Iterator[None]:
    """Note ``collection/name`` of every ``self.sow`` of a module while it lasts, kept or not.

    Not of ``nnm.sow`` in explicit modules, which does nothing where nobody asks.
    """

    def noting(sow: Callable[..., Any]) -> Callable[..., Any]:
        def sow_and_note(*args: Any, **kwargs: Any) -> Any:
            _, kind, name, *_ = inspect.signature(sow).bind(*args, **kwargs).arguments.values()
            paths.add(f"{collection_of(kind) if isinstance(kind, type) else kind}/{name}")
            return sow(*args, **kwargs)

        return sow_and_note

    with ExitStack() as stack:
        for sower in _SOWERS:
            sow = vars(sower)["sow"]
            stack.enter_context(mock.patch.object(sower, "sow", noting(sow)))
        yield
