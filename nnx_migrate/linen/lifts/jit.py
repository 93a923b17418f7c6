"""``nn.jit`` and ``nn.fold_rngs``: methods with keys folded in once, compiled or not."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

import jax
from flax import traceback_util
from flax.core.scope import DenyList, LazyRng

from .fingerprint import HashableProxy
from .pack import Groups, Pack
from .targets import lift_transform_cached

traceback_util.register_exclusion(__file__)


def jit(
    target: Any,
    variables: Any = True,
    rngs: Any = True,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    device: Any = None,
    backend: str | None = None,
    methods: Any = None,
) -> Any:
    """``jax.jit`` of a module class, or of a function that takes a module first.

    As ``flax.linen.jit`` (flax 0.12.8). A call is traced again when the module's fields change,
    or what its scope allows.

    Args:
      target: a module class or a function of a module.
      variables: collections the function may see.
      rngs: names of the keys it may see.
      static_argnums: positions of arguments that are no arrays, the module being number 0; so for
        ``donate_argnums``, whose buffers may be used again.
      static_argnames: names of such arguments.
      device: as of ``jax.jit``; so is ``backend``.
      methods: methods of a class to lift instead of ``__call__``.

    Returns:
      A class (named ``Jit...``), or a function, of the same signature.

    Raises:
      ValueError: a field of the module cannot be hashed.
    """
    return lift_transform_cached(
        _jit,
        target,
        variables=variables,
        rngs=rngs,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        device=device,
        backend=backend,
        methods=methods,
    )


def fold_rngs(target: Any, variables: Any = True, rngs: Any = True) -> Any:
    """Folds the module's path into its keys once for the call, and not for each key in it.

    As ``flax.linen.fold_rngs`` (flax 0.12.8): the keys are those of ``jit``, without compiling.

    Args:
      target: a module class or a function of a module.
      variables: collections the function may see.
      rngs: names of the keys it may see.
    """
    return lift_transform_cached(_fold_rngs, target, variables=variables, rngs=rngs)


def _jit(
    fn: Callable[..., Any],
    variables: Any,
    rngs: Any,
    static_argnums: Any,
    static_argnames: Any,
    donate_argnums: Any,
    device: Any,
    backend: Any,
) -> Callable[..., Any]:
    placement = {"device": device, "backend": backend}

    def compile_call(pure: Callable[..., Any]) -> Callable[..., Any]:
        # The key of the cache comes first, then variables and keys; the module was number 0.
        return jax.jit(
            pure,
            static_argnums=(0, *(i + 2 for i in _as_tuple(static_argnums) if i > 0)),
            static_argnames=static_argnames,
            donate_argnums=tuple(i + 2 for i in _as_tuple(donate_argnums) if i > 0),
            **{name: value for name, value in placement.items() if value is not None},
        )

    return _with_folded_keys(fn, variables, rngs, "jit", compile_call)


def _fold_rngs(fn: Callable[..., Any], variables: Any, rngs: Any) -> Callable[..., Any]:
    return _with_folded_keys(fn, variables, rngs, "fold_rngs", lambda pure: pure)


_jit.__name__ = "jit"
_fold_rngs.__name__ = "fold_rngs"


class _Packs(threading.local):
    """The packs of the calls that run in this thread: what is traced belongs to the last one."""

    def __init__(self) -> None:
        self.stack: list[Pack] = []


class _DrawCounts(threading.local):
    """By how much a call moved its counters when it was traced.

    A call that was traced before draws no keys while it runs, and has to count them all the same.
    """

    def __init__(self) -> None:
        self.by_key: dict[Any, list[Any]] = {}


_draw_counts = _DrawCounts()


def _with_folded_keys(
    fn: Callable[..., Any],
    variables: Any,
    rngs: Any,
    name: str,
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Callable[..., Any]:
    packs = _Packs()

    @functools.wraps(fn)
    def pure(key: Any, variables: Groups, rngs: Groups, /, *args: Any, **kwargs: Any) -> Any:
        def of_module(scopes: Any, *args: Any, **kwargs: Any) -> Any:
            return fn(scopes, key[1], *args, **kwargs)

        return packs.stack[-1].run(of_module, variables, rngs, *args, **kwargs)

    jit_call = wrap(pure)

    def call(scopes: Any, proxy: HashableProxy, *args: Any, **kwargs: Any) -> Any:
        pack = Pack(scopes, (variables,), (variables,), (rngs,), name)
        mutable_filter = _hashable_filter(variables)
        key = (tuple((_hashable_filter(s.mutable), mutable_filter) for s in pack.roots), proxy)
        before = [_copy_counts(root.rng_counters) for root in pack.roots]
        packs.stack.append(pack)
        try:
            y, out = jit_call(key, pack.variables, _without_suffixes(pack.rngs), *args, **kwargs)
        finally:
            packs.stack.pop()
        _count(pack, key, before)
        pack.publish(out)
        return y

    return call


def _without_suffixes(rngs: Groups) -> Any:
    """Keys without what is static in them, so that one trace serves every place in the tree."""

    def is_lazy(x: Any) -> bool:
        return isinstance(x, LazyRng)

    return jax.tree.map(lambda x: x.clear_suffix() if is_lazy(x) else x, rngs, is_leaf=is_lazy)


def _count(pack: Pack, key: Any, before: list[Any]) -> None:
    """Notes how many keys a first call drew; lets a later one have drawn as many."""
    if key not in _draw_counts.by_key:
        counters = [_copy_counts(root.rng_counters) for root in pack.roots]
        _draw_counts.by_key[key] = [
            _minus(now, then) for now, then in zip(counters, before, strict=True)
        ]
    else:
        for root, increments, then in zip(
            pack.roots, _draw_counts.by_key[key], before, strict=True
        ):
            _set(root.rng_counters, increments, then)


def _copy_counts(counters: Any) -> Any:
    """The counts; a lazy form of an explicit class keeps the module without values beside them."""
    counts = {k: v for k, v in counters.items() if isinstance(v, dict | int)}
    return {k: _copy_counts(v) if isinstance(v, dict) else v for k, v in counts.items()}


def _minus(now: Any, then: Any) -> dict[Any, Any]:
    return {
        k: _minus(v, then.get(k, {})) if isinstance(v, dict) else v - then.get(k, 0)
        for k, v in now.items()
    }


def _set(counters: Any, increments: Any, then: Any) -> None:
    for k, v in increments.items():
        if isinstance(v, dict):
            _set(counters.setdefault(k, {}), v, then.get(k, {}))
        else:
            counters[k] = then.get(k, 0) + v


def _hashable_filter(x: Any) -> Any:
    if isinstance(x, str):
        return (x,)
    if isinstance(x, DenyList):
        return DenyList(_hashable_filter(x.deny))
    return tuple(x) if isinstance(x, Iterable) else x


def _as_tuple(x: Any) -> tuple[int, ...]:
    return tuple(x) if isinstance(x, Iterable) else (x,)
