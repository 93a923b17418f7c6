"""One key for every draw, on either side, so that draws need no mapping between sides.

Flax derives the keys of the two sides differently (Linen: a hash of the scope path, flax/core/
scope.py; NNX: a counter per stream, flax/nnx/rnglib.py). Under ``constant_key`` both hand out the
same key at every draw: initialisers and dropout masks then agree bit for bit, or something else
differs. What it cannot see is two sites that share a key: ``recorded_draws`` sees that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from flax.core.scope import Scope
from flax.nnx.rnglib import RngStream


@contextmanager
def constant_key(key: Any) -> Iterator[None]:
    """Make every ``make_rng`` of Linen and every stream of NNX return ``key``.

    Counters still advance and missing streams still raise, as without it. ``key`` may be a
    tracer. Not for concurrent use: it replaces two methods of Flax while it lasts. What was compiled
    before is forgotten: compiled calls inside a module (``nn.jit``) would keep another key.
    """

    def make_rng(scope: Scope, name: str = "params") -> Any:
        linen_draw(scope, name)
        return key

    def draw(stream: RngStream) -> Any:
        nnx_draw(stream)
        return key

    linen_draw, nnx_draw = Scope.make_rng, RngStream.__call__
    jax.clear_caches()
    with _replaced(make_rng, draw):
        yield
    jax.clear_caches()


@contextmanager
def recorded_draws(keys: list[bytes]) -> Iterator[None]:
    """Append the key data of every draw from an NNX stream to ``keys``, those in lifts included.

    A draw under ``nnx.vmap`` or ``nnx.scan`` is one entry per lane or step.
    """

    def record(data: Any) -> None:
        keys.append(np.asarray(data).tobytes())

    def draw(stream: RngStream) -> Any:
        key = nnx_draw(stream)
        data = jax.random.key_data(key)
        if isinstance(data, jax.core.Tracer):
            jax.debug.callback(record, data)
        else:
            record(data)  # callbacks take no arrays of several processes
        return key

    nnx_draw = RngStream.__call__
    with _replaced(Scope.make_rng, draw):
        yield
        jax.effects_barrier()


@contextmanager
def _replaced(make_rng: Callable[..., Any], draw: Callable[..., Any]) -> Iterator[None]:
    before = Scope.make_rng, RngStream.__call__
    Scope.make_rng, RngStream.__call__ = make_rng, draw  # type: ignore[method-assign]
    try:
        yield
    finally:
        Scope.make_rng, RngStream.__call__ = before  # type: ignore[method-assign]
