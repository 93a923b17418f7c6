"""One key for every draw of a stream, on either side, so that draws need no mapping between sides.

Flax derives the keys of the two sides differently (Linen: a hash of the scope path, flax/core/
scope.py; NNX: a counter per stream, flax/nnx/rnglib.py). Under ``constant_key`` both hand out the
same key at every draw of a stream: initialisers and dropout masks then agree bit for bit, or something
else differs, such as the stream. What it cannot see is two sites that share a key: ``record_draws``
sees that of initial values, ``distinct_keys`` of a call.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import jax
import numpy as np
from flax.core.scope import LazyRng, Scope
from flax.nnx.rnglib import RngStream

from nnx_migrate.linen.core.scope import Scope as LazyScope
from nnx_migrate.nn.seeding.values import InitStream
from nnx_migrate.nn.streams.linen_streams import LinenStream

# Explicit modules inside lazy ones draw Linen's keys from streams of their own.
_STREAMS = (RngStream, LinenStream, InitStream)

# What draws fall back to where there is no stream of their name: Linen's and NNX's.
_FALLBACKS = ("params", "default")


def own_streams(names: Iterable[str]) -> tuple[str, ...]:
    """The streams of a case that have a key of their own, in an order that both sides have."""
    return tuple(sorted({*names} - {*_FALLBACKS}))


@contextmanager
def constant_key(
    key: Any, streams: Iterable[str] = (), stream_names: set[str] | None = None
) -> Iterator[None]:
    """Make every ``make_rng`` of Linen and every stream of NNX return ``key``, or one made of it.

    Each of the ``streams`` of a case has its own, by the name that a draw asks for: inside of a lift
    that does not hand a stream on Linen falls back to ``params``, NNX does not. What is drawn from
    other streams, which fall back on both sides, has ``key``. The names are noted in ``stream_names``.
    Counters still advance and missing streams still raise, as without it. ``key`` may be a
    tracer.
    """

    names = set() if stream_names is None else stream_names
    keys = {name: _key_of(key, name) for name in own_streams(streams)}

    def constant(own: Any, name: str) -> Any:
        names.add(name)
        return keys.get(name, key)

    with replaced_keys(constant):
        yield


def _key_of(key: Any, stream: str) -> Any:
    """Another key for each stream, at the price of one operation in a program."""
    data = jax.random.key_data(key) ^ np.uint32(zlib.crc32(stream.encode()))
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))


@contextmanager
def replaced_keys(replacement: Callable[[Any, str], Any]) -> Iterator[None]:
    """Let every draw of a key, of either side, return ``replacement(key, stream)``.

    Not for concurrent use: it replaces methods of Flax while it lasts. What was compiled before is
    forgotten: compiled calls inside a module (``nn.jit``) would keep other keys.
    """

    def make_rng(scope: Scope, name: str = "params") -> Any:
        return replacement(linen_draw(scope, name), name)

    def make_lazy_rng(scope: LazyScope, name: str = "params") -> Any:
        return replacement(lazy_draw(scope, name), name)

    def drawing(nnx_draw: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda stream: replacement(nnx_draw(stream), stream.tag)

    linen_draw, lazy_draw = Scope.make_rng, LazyScope.make_rng
    draws = {kind: drawing(vars(kind)["__call__"]) for kind in _STREAMS}
    jax.clear_caches()
    with _patch(make_rng, make_lazy_rng, draws):
        yield
    jax.clear_caches()


_INITIAL = frozenset(_FALLBACKS)  # streams of initial values


@contextmanager
def record_draws(keys: list[bytes]) -> Iterator[None]:
    """Append the key data of every draw of an NNX model to ``keys``, those in lifts included.

    It draws from streams, and lazy modules from their scopes.

    A draw under ``nnx.vmap`` or ``nnx.scan`` is one entry per lane or step.
    """

    def record(data: Any) -> None:
        keys.append(np.asarray(data).tobytes())

    def note_bits(key: Any) -> Any:
        data = jax.random.key_data(key)
        if isinstance(data, jax.core.Tracer):
            jax.debug.callback(record, data)
        else:
            record(data)  # callbacks take no arrays of several processes
        return key

    places: set[tuple[Any, ...]] = set()

    def make_lazy_rng(scope: LazyScope, name: str = "params") -> Any:
        # What a draw folds into its stream is known without its value; a callback would be an
        # effect, which Linen's scan takes for a dependency on its body.
        key = lazy_draw(scope, name)
        stream = name if name in scope.rngs else "params"
        place = (*scope.rngs[stream].suffix, scope.rng_counters[stream])
        if (stream, place) not in places:
            places.add((stream, place))
            with jax.ensure_compile_time_eval():
                folded_key = LazyRng.create(jax.random.key(0), *place).as_jax_rng()
                keys.append(stream.encode() + np.asarray(jax.random.key_data(folded_key)).tobytes())
        return key

    def draw(stream: RngStream) -> Any:
        key = nnx_draw(stream)
        # Lazy modules run the calls of explicit ones to make their variables, maybe more than once:
        # what a call draws from other streams is no initial value.
        return note_bits(key) if stream.tag in _INITIAL else key

    lazy_draw, nnx_draw = LazyScope.make_rng, RngStream.__call__
    with _patch(Scope.make_rng, make_lazy_rng, {RngStream: draw}):
        yield
        jax.effects_barrier()


@contextmanager
def _patch(
    make_rng: Callable[..., Any],
    make_lazy_rng: Callable[..., Any],
    draws: Mapping[type[RngStream], Callable[..., Any]],
) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Scope, "make_rng", make_rng))
        stack.enter_context(mock.patch.object(LazyScope, "make_rng", make_lazy_rng))
        for kind, draw in draws.items():
            stack.enter_context(mock.patch.object(kind, "__call__", draw))
        yield
