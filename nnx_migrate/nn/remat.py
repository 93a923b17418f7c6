"""``linen.remat``: a module class (or function) recomputed in the backward pass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import jax
from flax import nnx

from .lifted import Values, take_apart

T = TypeVar("T")


def remat(
    target: T,
    *,
    static_argnums: int | Sequence[int] = (),
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    counts_self: bool = True,
) -> T:
    """A subclass of ``target`` whose ``__call__`` goes through ``jax.checkpoint``.

    A function that takes the module first is wrapped itself. Only variables that the call changed
    come back: ``nnx.remat`` returns all of them, which a scan around it would stack anew.

    Constructor, variables and paths are those of ``target``. Its name, which automatic submodule
    names count, is the one Linen gives: ``CheckpointBlock`` for ``nn.remat``,
    ``Core_remat_staticBlock`` for ``flax.linen.partitioning.remat`` (flax 0.12.8,
    linen/transforms.py and linen/partitioning.py; the same in 0.12.12).

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, or a plain function.
      static_argnums: positions of call arguments that are not traced.
      prevent_cse, policy: as in ``jax.checkpoint``.
      counts_self: whether position 0 is ``self``, as ``nn.remat`` has it; with False it is the
        first argument after it, as ``flax.linen.partitioning.remat`` has it.

    Raises:
      TypeError: ``target`` is none of these (a layer factory builds no class to derive from).
      ValueError: a position is negative, or names ``self``.
    """
    if isinstance(target, functools.partial):
        inner = remat(
            target.func,
            static_argnums=static_argnums,
            prevent_cse=prevent_cse,
            policy=policy,
            counts_self=counts_self,
        )
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    positions = _positions(static_argnums, counts_self)
    given = {"static_argnums": positions, "prevent_cse": prevent_cse, "policy": policy}
    if inspect.isfunction(target):
        return cast(T, _rematerialized(target, given))
    if not (isinstance(target, type) and issubclass(target, nnx.Module)):
        raise TypeError(f"expected remat to get an nnx.Module class, found {target!r}")
    # Only ``target``'s own call is wrapped, so the wrapped function never calls itself.
    __call__ = _rematerialized(target.__call__, given)
    prefix = "Checkpoint" if counts_self else "Core_remat_static"
    body = {"__call__": __call__, "__module__": target.__module__, "__doc__": target.__doc__}
    return cast(T, type(prefix + target.__name__, (target,), body))


def _rematerialized(function: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """``function(module, ...)`` as a pure function of the module's variables, checkpointed.

    With further modules among the arguments it is ``nnx.remat``, which follows them all.
    """

    @functools.wraps(function)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        if any(map(_is_module, jax.tree.leaves((args, kwargs), is_leaf=_is_module))):
            return nnx.remat(function, **options)(module, *args, **kwargs)
        parts = take_apart(module)
        streams = parts.random_state()  # closed over: those not drawn from leave no trace

        def pure(values: Values, *args: Any, **kwargs: Any) -> Any:
            given = values | streams
            copy = parts.assemble(given)
            outputs = function(copy, *args, **kwargs)
            return outputs, parts.changed(copy, given)

        outputs, changed = jax.checkpoint(pure, **options)(parts.values(), *args, **kwargs)
        parts.put_back(changed)
        return outputs

    return call


def _is_module(value: Any) -> bool:
    return isinstance(value, nnx.Module)


def _positions(static_argnums: int | Sequence[int], counts_self: bool) -> tuple[int, ...]:
    """The positions counted with ``self`` as 0."""
    given = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    shifted = tuple(position if counts_self else position + 1 for position in given)
    if any(position < 1 for position in shifted):
        first = 1 if counts_self else 0
        raise ValueError(
            f"expected static_argnums of call arguments (from {first} on), found {given}"
        )
    return shifted
