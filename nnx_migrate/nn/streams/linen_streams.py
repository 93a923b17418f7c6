"""Random streams that draw Linen's own keys: those of ``make_rng`` at the module's path.

flax 0.12.8: core/scope.py (``LazyRng``: the key of a stream folded with the path and a count).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import errors, nnx

from nnx_migrate.nn.variables.sharing import linen_place

Path = tuple[str, ...]
_DRAWS = 64  # keys of a stream that are Linen's, at least: what a loop of JAX draws later is folded from the last


class LinenStream(nnx.RngStream):
    """Draws the keys that Linen's ``make_rng`` gives a module.

    Attributes:
      path: of the module, below the one whose call has keys of its own (:mod:`nnx_migrate.nn.streams.forked`).
      source: the stream of the call that keys come from.
      place: of the module in the model, with what was drawn there.
      fallback: the stream of ``params`` at the same place, for lifts that leave this one out.
    """

    def __init__(
        self,
        key: Any,
        *,
        tag: str,
        source: str,
        place: Place,
        fallback: LinenStream | None = None,
    ) -> None:
        super().__init__(key, tag=tag)
        self.path = place.path
        self.source = source
        self.place = place
        self.fallback = nnx.data(fallback)

    def inside_lift(self, has: Callable[[str], bool]) -> nnx.RngStream:
        """The stream inside of a lift that hands on the keys of those streams alone."""
        if has(self.source):
            return self
        if self.fallback is not None and has(self.fallback.source):
            return self.fallback
        return _MissingStream(self.key[...], tag=self.tag)

    @property
    def tally(self) -> Tally:
        """The draws of the module."""
        return self.place.tallies.of(self.place.path, self.source)

    def __call__(self) -> jax.Array:
        """The next key."""
        self.tally.draws += 1
        count = self.count[...]
        self.count[...] += 1
        folds = jnp.asarray(_folds(self.path, _at_least(self.tally.draws), _separator()))
        last = len(folds) - 1
        key = jax.random.fold_in(self.key[...], folds[jnp.minimum(count, last)])
        later = jax.random.fold_in(key, count)
        return jnp.where(count < last, key, later)

    def fold_in(self, path: Path, draw: int) -> jax.Array:
        """The stream's key with a path and a count folded in."""
        return jax.random.fold_in(self.key[...], jnp.uint32(_fold(path, draw, _separator())))


@dataclass
class Tally:
    """How many draws were traced, of a module and all its copies: Linen counts these."""

    draws: int = 0


class Tallies:
    """The tallies of a model, by the path of the module and the stream that keys come from."""

    def __init__(self) -> None:
        self.known: dict[tuple[Path, str], Tally] = {}

    def of(self, path: Path, source: str) -> Tally:
        """That of the module at ``path``."""
        return self.known.setdefault((path, source), Tally())

    def below(self, path: Path) -> dict[tuple[Path, str], int]:
        """The draws of the module at ``path`` and its submodules, by paths below it."""
        return {
            (where[len(path) :], source): one.draws
            for (where, source), one in self.known.items()
            if where[: len(path)] == path
        }


@dataclass(frozen=True)
class Place:
    """Where a module stands: no part of its structure, so that modules share compilations."""

    path: Path = field(compare=False)
    tallies: Tallies = field(compare=False)


class _MissingStream(nnx.RngStream):
    """Stands where the call was given no key."""

    def __call__(self) -> jax.Array:
        raise errors.InvalidRngError(
            f"the call needs a key for the stream '{self.tag}': pass rngs={{'{self.tag}': key}}"
        )


def _at_least(draws: int) -> int:
    """How many keys a stream needs of which so many draws were traced: few sizes, so that programs stay alike."""
    return max(_DRAWS, 1 << (draws + 1).bit_length())


@functools.lru_cache(maxsize=256)  # every draw asks
def _folds(path: Path, draws: int, separator: bytes) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """What Linen folds into the stream's key for its draws 1, 2, ... at ``path``."""
    return np.array([_fold(path, draw, separator) for draw in range(1, draws + 1)], np.uint32)


def _fold(path: Path, draw: int, separator: bytes) -> int:
    """What Linen folds into the stream's key for one draw at ``path``."""
    words = (*(separator + name.encode() for name in path), separator + _as_bytes(draw))
    return int.from_bytes(hashlib.sha1(b"".join(words)).digest()[:4], "big")


def _as_bytes(draw: int) -> bytes:
    return draw.to_bytes((draw.bit_length() + 7) // 8, "big")


def _separator() -> bytes:
    from flax import config

    return b"\00" if config.flax_fix_rng_separator else b""


def streams_of(module: Any) -> Iterator[tuple[Any, str, nnx.RngStream, Path]]:
    """Every random stream of a module: its owner, its name there, and the path of its scope."""
    place = linen_place(module)
    for path, owner in list(nnx.iter_graph(module)):
        if not isinstance(owner, nnx.Pytree) or isinstance(owner, LinenStream):
            continue
        scope = place(path[:-1] if isinstance(owner, nnx.Rngs) else path)
        for name, child in list(vars(owner).items()):
            if isinstance(child, nnx.RngStream):
                yield owner, name, child, tuple(map(str, scope))


def set_streams(
    model: nnx.Module,
    rngs: Any,
    scope_path: Path = (),
    draw_counts: Mapping[tuple[Path, str], int] = MappingProxyType({}),
) -> Tallies:
    """Let every stream of the model draw the keys that Linen's ``apply(rngs=rngs)`` hands out.

    ``scope_path``: where the model stands in the Linen model whose call has these keys; ``draw_counts``:
    what it drew in this call before, by path and stream. Returns where the draws are counted.
    """
    keys_by_stream, tallies = keys_of(rngs), Tallies()
    # Streams of one module that have no keys of their own count together.
    counts: dict[tuple[Path, str], Any] = {}
    for owner, name, child, scope in streams_of(model):
        tag = str(getattr(owner, "rng_collection", child.tag))
        stream = _stream(child, tag, (*scope_path, *scope), keys_by_stream, tallies)
        here = (stream, stream.fallback) if isinstance(stream, LinenStream) else ()
        for one in here:
            if one is not None:
                _share_count(one, counts, draw_counts)
        setattr(owner, name, stream)
    return tallies


def _share_count(
    stream: LinenStream,
    counts: dict[tuple[Path, str], Any],
    draw_counts: Mapping[tuple[Path, str], int],
) -> None:
    """Let a stream count with those of its module that have the same keys."""
    key = (stream.path, stream.source)
    if key in counts:
        stream.count = counts[key]
    elif before := draw_counts.get(key):
        stream.count[...] += before
        stream.tally.draws = before
    counts[key] = stream.count


@contextmanager
def lifted_streams(module: nnx.Module, has: Callable[[str], bool]) -> Iterator[None]:
    """While a lift runs the module that hands on the keys of those streams of Linen's alone.

    Linen's ``make_rng`` looks for a key among those that the scope has: inside of ``nn.scan`` what its
    ``split_rngs`` does not name is drawn from ``params``, as where the call was given no such key.
    """
    owned_streams = [
        (owner, name, one)
        for _, owner in list(nnx.iter_graph(module))
        if isinstance(owner, nnx.Pytree) and not isinstance(owner, LinenStream)
        for name, one in vars(owner).items()
        if isinstance(one, LinenStream) and not has(one.source)
    ]
    for owner, name, one in owned_streams:
        setattr(owner, name, one.inside_lift(has))
    try:
        yield
    finally:
        for owner, name, one in owned_streams:
            setattr(owner, name, one)


def keys_of(rngs: Any) -> dict[str, Any]:
    """What ``apply`` takes as ``rngs=``, a key or keys by stream, as typed keys by stream."""
    keys = {} if rngs is None else dict(rngs) if isinstance(rngs, Mapping) else {"params": rngs}
    return {name: typed_key(key) for name, key in keys.items()}


def typed_key(key: Any) -> Any:
    """A number, old-style or typed key as a typed key."""
    if isinstance(key, int):
        return jax.random.key(key)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(key)
    return key


def _stream(
    old: nnx.RngStream, tag: str, path: Path, keys_by_stream: Mapping[str, Any], tallies: Tallies
) -> nnx.RngStream:
    source = tag if tag in keys_by_stream else "params"
    if keys_by_stream.get(source) is None:
        return _MissingStream(old.key[...], tag=tag)
    shape = old.count[...].shape

    def new_stream(source: str, fallback: LinenStream | None = None) -> LinenStream:
        keys = jax.random.split(keys_by_stream[source], shape) if shape else keys_by_stream[source]
        place = Place(path, tallies)
        return LinenStream(keys, tag=tag, source=source, place=place, fallback=fallback)

    has_other = source != "params" and keys_by_stream.get("params") is not None
    return new_stream(source, new_stream("params") if has_other else None)
