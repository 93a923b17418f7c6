"""Initial values from Linen's keys: the same seed gives a migrated module the same parameters.

Linen derives the key of a parameter from its scope path (flax 0.12.8, core/scope.py); NNX draws keys
in order of construction. :func:`build` traces the constructor once to see which draw feeds which
parameter, then constructs with Linen's key in place of each draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
from flax import nnx
from flax.core.scope import LazyRng

from .variables import variable_type

M = TypeVar("M", bound=nnx.Module)


def build(make: Callable[..., M], *args: Any, rngs: Any, **options: Any) -> M:
    """``make(*args, **options, rngs=...)`` with the parameters Linen's ``init(rngs, ...)`` gives.

    Args:
      make: a migrated class, or a partial of one.
      rngs: a key, or a dict of keys by stream, as Linen's ``init`` takes it.

    Parameters whose draw is not theirs alone (modules stacked by ``nnx.vmap``) get values of the
    same distribution from other keys. Bits are Linen's when both sides run jitted, or both do not.

    Raises:
      ValueError: ``rngs`` has no key for ``params``.
    """
    given = dict(rngs) if isinstance(rngs, Mapping) else {"params": rngs}
    if given.get("params") is None:
        raise ValueError(f"expected a key for the stream 'params' in rngs, found {sorted(given)}")
    root = _typed(given.pop("params"))

    def construct(keys: Sequence[jax.Array]) -> tuple[M, int]:
        source = _Draws(keys, root)
        streams = nnx.Rngs(0, **given)
        setattr(streams, "default", _Source(root, source))  # noqa: B010 - a stream of any name
        return make(*args, **options, rngs=streams), source.count

    count = _count(construct)
    spare = [jax.random.fold_in(root, index) for index in range(count)]
    keys = _linen_keys(construct, spare, root)
    return construct(keys)[0]


class _Draws:
    """Hands out keys in order; static, so that it is shared by everything that draws."""

    def __init__(self, keys: Sequence[jax.Array], root: jax.Array) -> None:
        self.keys, self.root, self.count = keys, root, 0

    def __call__(self) -> jax.Array:
        index, self.count = self.count, self.count + 1
        if index < len(self.keys):
            return self.keys[index]
        return jax.random.fold_in(self.root, index)


class _Source(nnx.RngStream):
    """A stream that draws from ``_Draws``; streams forked from it are plain ones."""

    def __init__(self, key: jax.Array, source: _Draws) -> None:
        super().__init__(key, tag="default")
        self.source = source

    def __call__(self) -> jax.Array:
        # Split for a stack or inside a transform, the stream has another key: its own keys count.
        is_own = self.key.get_value() is self.source.root
        key: jax.Array = self.source() if is_own else super().__call__()
        return key

    def split(self, k: int | tuple[int, ...]) -> nnx.RngStream:
        return nnx.RngStream(jax.random.split(self(), k), tag=self.tag)

    def fork(self, *, split: int | tuple[int, ...] | None = None) -> nnx.RngStream:
        if split is not None:
            return self.split(split)
        return nnx.RngStream(self(), tag=self.tag)


def _typed(key: Any) -> Any:
    if isinstance(key, int):
        return jax.random.key(key)
    if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(key)


def _count(construct: Callable[[Sequence[jax.Array]], tuple[Any, int]]) -> int:
    counts: list[int] = []

    def run() -> Any:
        module, count = construct(())
        counts.append(count)
        return nnx.to_pure_dict(nnx.state(module, nnx.Param))

    jax.eval_shape(run)
    return counts[-1]


def _linen_keys(
    construct: Callable[[Sequence[jax.Array]], tuple[Any, int]],
    spare: Sequence[jax.Array],
    root: jax.Array,
) -> list[jax.Array]:
    """For each draw, the key Linen gives the one parameter it feeds; else the spare key."""
    places: list[tuple[Any, ...]] = []

    def run(*keys: jax.Array) -> list[Any]:
        places.clear()
        module, _ = construct(keys)
        values = []
        for place, value in _parameters(module):
            places.append(place)
            values.append(value)
        return values

    jaxpr = jax.make_jaxpr(run)(*spare).jaxpr
    fed = _dependencies(jaxpr)
    users = Counter(draw for draws in fed for draw in draws)
    keys = list(spare)
    for place, draws in zip(places, fed, strict=True):
        if len(draws) == 1 and users[min(draws)] == 1:
            keys[min(draws)] = LazyRng.create(root, *place).as_jax_rng()
    return keys


def _parameters(module: nnx.Module) -> list[tuple[tuple[Any, ...], Any]]:
    """(scope path and Linen's count, value) of every parameter that is one array.

    Linen counts the parameters of one scope from 1 in the order they are made.
    """
    found: list[tuple[tuple[Any, ...], Any]] = []
    for path, owner in nnx.iter_graph(module):
        if not isinstance(owner, nnx.Module):
            continue
        params = [one for one in vars(owner).values() if type(one) is variable_type("params")]
        for number, one in enumerate(params, 1):
            if isinstance(one.get_value(), jax.Array):
                found.append(((*map(str, path), number), one.get_value()))
    return found


def _dependencies(jaxpr: Any) -> list[frozenset[int]]:
    """For each output of a jaxpr, the indices of the inputs it depends on."""
    known: dict[int, frozenset[int]] = {
        id(one): frozenset({index}) for index, one in enumerate(jaxpr.invars)
    }
    empty: frozenset[int] = frozenset()
    for equation in jaxpr.eqns:
        read = [known.get(id(one), empty) for one in equation.invars]
        union = empty.union(*read)
        for one in equation.outvars:
            known[id(one)] = union
    return [known.get(id(one), empty) for one in jaxpr.outvars]
