"""Random streams that draw Linen's own keys: those of ``make_rng`` at the module's path.

flax 0.12.8: core/scope.py (``LazyRng``: the key of a stream folded with the path and a count).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

Path = tuple[str, ...]
_DRAWS = 64  # keys of one stream that are Linen's; later ones are folded from the last


class _LinenStream(nnx.RngStream):
    """Draws the keys that Linen's ``make_rng`` gives the module at ``path``."""

    def __init__(self, key: Any, *, tag: str, path: Path = ()) -> None:
        super().__init__(key, tag=tag)
        self.path = path
        self.tally = _Tally()

    def __call__(self) -> jax.Array:
        self.tally.draws += 1
        count = self.count[...]
        self.count[...] += 1
        folds = jnp.asarray(_folds(self.path))
        key = jax.random.fold_in(self.key[...], folds[jnp.minimum(count, _DRAWS - 1)])
        later = jax.random.fold_in(key, count)
        return jnp.where(count < _DRAWS - 1, key, later)


class _Tally:
    """How many draws were traced, of a stream and all its copies: Linen counts these."""

    def __init__(self) -> None:
        self.draws = 0


class _MissingStream(nnx.RngStream):
    """Stands where the call was given no key."""

    def __call__(self) -> jax.Array:
        raise ValueError(
            f"the call needs a key for the stream '{self.tag}': pass rngs={{'{self.tag}': key}}"
        )


def _folds(path: Path) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """What Linen folds into the stream's key for its draws 1, 2, ... at ``path``."""
    digests = (hashlib.sha1(b"".join(_words(path, draw))).digest() for draw in range(1, _DRAWS + 1))
    return np.array([int.from_bytes(one[:4], "big") for one in digests], np.uint32)


def _words(path: Path, draw: int) -> Iterator[bytes]:
    from flax import config

    separator = b"\00" if config.flax_fix_rng_separator else b""
    for name in path:
        yield separator + name.encode()
    yield separator + draw.to_bytes((draw.bit_length() + 7) // 8, "big")


def set_streams(model: nnx.Module, rngs: Any) -> None:
    """Let every stream of the model draw the keys that Linen's ``apply(rngs=rngs)`` hands out."""
    given = keys_of(rngs)
    for path, owner in list(nnx.iter_graph(model)):
        if not isinstance(owner, nnx.Pytree):
            continue
        for name, child in list(vars(owner).items()):
            if isinstance(child, nnx.RngStream):
                scope = path[:-1] if isinstance(owner, nnx.Rngs) else path
                tag = getattr(owner, "rng_collection", child.tag)
                setattr(owner, name, _stream(child, str(tag), tuple(map(str, scope)), given))


def keys_of(rngs: Any) -> dict[str, Any]:
    """What ``apply`` takes as ``rngs=``, a key or keys by stream, as typed keys by stream."""
    given = {} if rngs is None else dict(rngs) if isinstance(rngs, Mapping) else {"params": rngs}
    return {name: typed_key(key) for name, key in given.items()}


def typed_key(key: Any) -> Any:
    """A number, old-style or typed key as a typed key."""
    if isinstance(key, int):
        return jax.random.key(key)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(key)
    return key


def _stream(old: nnx.RngStream, tag: str, path: Path, given: Mapping[str, Any]) -> nnx.RngStream:
    key = given.get(tag, given.get("params"))
    if key is None:
        return _MissingStream(old.key[...], tag=tag)
    shape = old.count[...].shape
    return _LinenStream(jax.random.split(key, shape) if shape else key, tag=tag, path=path)
