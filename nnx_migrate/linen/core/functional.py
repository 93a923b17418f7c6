"""Functions of a module's variables: `init`, `apply` and `bind`, in Linen's form.

flax 0.12.8: linen/module.py and core/scope.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import errors, traceback_util
from flax.core import FrozenDict, unfreeze

from nnx_migrate.linen.core.context import context
from nnx_migrate.linen.core.filters import (
    CollectionFilter,
    DenyList,
    LazyRng,
    in_filter,
    union_filters,
)
from nnx_migrate.linen.core.scope import Scope

NOT_INTERMEDIATES = DenyList("intermediates")


def capture_call_intermediates(module: Any, method_name: str) -> bool:
    """The filter behind ``capture_intermediates=True``: outputs of `__call__`."""
    return method_name == "__call__"


def is_valid_rng(rng: Any) -> bool:
    """Whether ``rng`` is one key: of a key type, or uint32 data of the default implementation."""
    if isinstance(rng, LazyRng):
        return True
    if not isinstance(rng, np.ndarray | jax.Array):
        return False
    if jnp.issubdtype(rng.dtype, jax.dtypes.prng_key):
        return rng.shape == ()
    implementation: Any = jax.config.jax_default_prng_impl  # type: ignore[attr-defined]
    return (rng.shape, rng.dtype) == _raw_key_type(implementation)


@functools.cache
def _raw_key_type(implementation: str) -> tuple[tuple[int, ...], Any]:
    data = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    return data.shape, data.dtype


def is_valid_rngs(rngs: Any) -> bool:
    """Whether ``rngs`` maps names of streams to keys."""
    if not isinstance(rngs, dict | FrozenDict):
        return False
    return all(isinstance(name, str) and is_valid_rng(rng) for name, rng in rngs.items())


def _is_valid_variables(variables: Any) -> bool:
    return all(
        isinstance(name, str)
        and isinstance(part, dict | FrozenDict)
        and all(isinstance(key, str) for key in part)
        for name, part in variables.items()
    )


def bind_scope(
    variables: Any,
    rngs: Any = None,
    mutable: CollectionFilter = False,
    flags: Mapping[str, Any] | None = None,
) -> Scope:
    """A root scope over ``variables``; the collections that may change are copied.

    Raises:
        ApplyScopeInvalidVariablesTypeError: no mapping of collections.
        InvalidRngError: no mapping of streams.
    """
    if not _is_valid_variables(variables):
        raise errors.ApplyScopeInvalidVariablesTypeError()
    if rngs is not None and not is_valid_rngs(rngs):
        raise errors.InvalidRngError(
            "rngs should be a dictionary mapping strings to `jax.PRNGKey`."
        )
    own = {
        col: unfreeze(part) if in_filter(mutable, col) else part for col, part in variables.items()
    }
    return Scope(own, rngs=rngs, mutable=mutable, flags=flags)


def _apply_scope_fn(
    fn: Callable[..., Any], mutable: CollectionFilter, flags: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """``fn`` of a scope as a function of variables."""

    @functools.wraps(fn)
    def wrapper(variables: Any, *args: Any, rngs: Any = None, **kwargs: Any) -> Any:
        if rngs is not None:
            if not is_valid_rng(rngs) and not is_valid_rngs(rngs):
                raise ValueError(
                    "The ``rngs`` argument passed to an apply function should be a ``jax.PRNGKey``"
                    " or a dictionary mapping strings to ``jax.PRNGKey``."
                )
            rngs = rngs if isinstance(rngs, dict | FrozenDict) else {"params": rngs}
        if "params" in variables:
            params = variables["params"]
            if isinstance(params, dict | FrozenDict) and "params" in params:
                raise errors.ApplyScopeInvalidVariablesStructureError(variables)
        with bind_scope(variables, rngs, mutable, flags).temporary() as root:
            result = fn(root, *args, **kwargs)
        return result if mutable is False else (result, root.mutable_variables())

    return wrapper


def _init_scope_fn(fn: Callable[..., Any], mutable: CollectionFilter) -> Callable[..., Any]:
    """``fn`` of a scope as a function of keys that makes the variables."""

    @functools.wraps(fn)
    def wrapper(rngs: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_valid_rng(rngs) and not is_valid_rngs(rngs):
            raise ValueError(
                "First argument passed to an init function should be a ``jax.PRNGKey`` or a"
                " dictionary mapping strings to ``jax.PRNGKey``."
            )
        rngs = rngs if isinstance(rngs, dict | FrozenDict) else {"params": rngs}
        run = _apply_scope_fn(fn, mutable, {"initializing": True})
        return run({}, *args, rngs=rngs, **kwargs)

    return wrapper


def _of_scope(fn: Callable[..., Any], module: Any, capture: Any) -> Callable[..., Any]:
    """``fn`` of a bound copy of the module as a function of a scope."""

    @functools.wraps(fn)
    def scope_fn(scope: Any, *args: Any, **kwargs: Any) -> Any:
        stack = context.capture_stack
        stack.append(capture)
        try:
            return fn(module.clone(parent=scope, _deep_clone=True), *args, **kwargs)
        finally:
            stack.pop()

    return scope_fn


def _capture(capture: Any, mutable: CollectionFilter) -> tuple[Any, CollectionFilter]:
    if capture is True:
        capture = capture_call_intermediates
    return capture, union_filters(mutable, "intermediates") if capture else mutable


@traceback_util.api_boundary
def apply(
    fn: Callable[..., Any],
    module: Any,
    mutable: CollectionFilter = False,
    capture_intermediates: Any = False,
) -> Callable[..., Any]:
    """``fn(bound module, *args)`` as ``(variables, *args, rngs=None)``.

    The function returns the output, and with ``mutable`` also the variables that may have changed.
    ``capture_intermediates``: True, or a filter (module, method name) of outputs to collect.
    """
    capture, mutable = _capture(capture_intermediates, mutable)
    return _apply_scope_fn(_of_scope(fn, module, capture), mutable)


@traceback_util.api_boundary
def init_with_output(
    fn: Callable[..., Any],
    module: Any,
    mutable: CollectionFilter = NOT_INTERMEDIATES,
    capture_intermediates: Any = False,
) -> Callable[..., Any]:
    """``fn(bound module, *args)`` as ``(rngs, *args) -> (output, new variables)``."""
    capture, mutable = _capture(capture_intermediates, mutable)
    return _init_scope_fn(_of_scope(fn, module, capture), mutable)


@traceback_util.api_boundary
def init(
    fn: Callable[..., Any],
    module: Any,
    mutable: CollectionFilter = NOT_INTERMEDIATES,
    capture_intermediates: Any = False,
) -> Callable[..., Any]:
    """``fn(bound module, *args)`` as ``(rngs, *args) -> new variables``."""
    run = init_with_output(fn, module, mutable, capture_intermediates)

    @functools.wraps(run)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return run(*args, **kwargs)[1]

    return wrapper
