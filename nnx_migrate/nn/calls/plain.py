"""A plain call of an NNX module that draws Linen's keys: ``rngs=`` as in Linen's ``apply``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flax import nnx

from nnx_migrate.nn.streams.linen_streams import set_streams, streams_of


def call(
    model: nnx.Module,
    /,
    *args: Any,
    rngs: Any,
    method: Callable[..., Any] | str | None = None,
    **kwargs: Any,
) -> Any:
    """``model(*args, **kwargs)`` whose random streams draw the keys that Linen derives from ``rngs``.

    The model keeps what the call changes (running statistics), and has its own streams back
    afterwards, as they were: nothing of the keys stays with it.

    Args:
      model: any NNX module; its streams are those of the modules that :mod:`nnx_migrate.nn` has, too.
      rngs: a key, or keys by stream, as Linen's ``apply`` takes them.
      method: a method by name, or a function of the module; without one the module itself.

    Raises:
      flax.errors.InvalidRngError: a stream is drawn from that ``rngs`` lacks.
    """
    owned_streams = [(owner, name, stream) for owner, name, stream, _ in streams_of(model)]
    run = model if method is None else getattr(model, method) if isinstance(method, str) else None
    set_streams(model, rngs)
    try:
        return method(model, *args, **kwargs) if run is None else run(*args, **kwargs)  # type: ignore[misc, operator]
    finally:
        for owner, name, stream in owned_streams:
            setattr(owner, name, stream)
