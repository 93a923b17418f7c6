"""``linen.remat``: a module class (or function) recomputed in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax

from nnx_migrate.nn.lifts.methods import lift_calls
from nnx_migrate.nn.lifts.pure import PureCall
from nnx_migrate.nn.variables.parts import Values

T = TypeVar("T")


def remat(
    target: T,
    *,
    static_argnums: int | Sequence[int] = (),
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    counts_self: bool = True,
    methods: Any = None,
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
      methods: names of the methods to recompute in place of ``__call__``, or a dict from each to
        its own ``static_argnums``, ``prevent_cse`` and ``policy``.

    Raises:
      TypeError: ``target`` is none of these (a layer factory builds no class to derive from).
      ValueError: a position is negative, or names ``self``.
    """
    given = {"static_argnums": static_argnums, "prevent_cse": prevent_cse, "policy": policy}
    prefix = "Checkpoint" if counts_self else "Core_remat_static"

    def wrap(function: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
        positions = _positions(options.get("static_argnums", ()), counts_self)
        return _rematerialized(function, {**options, "static_argnums": positions})

    return lift_calls(target, prefix, wrap, given, methods)


def _rematerialized(function: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """``function(module, ...)`` as a pure function of the modules' variables, checkpointed."""

    @functools.wraps(function)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        lifted = PureCall.of(module, args, kwargs)
        streams = lifted.parts.random_state()  # closed over: those not drawn from leave no trace

        def pure(values: Values, *args: Any, **kwargs: Any) -> tuple[Any, Values]:
            return lifted.changes(function, values | streams, args, kwargs)

        checkpointed = jax.checkpoint(pure, **options)
        outputs, changed = checkpointed(lifted.parts.values(), *lifted.args, **lifted.kwargs)
        lifted.parts.put_back(changed)
        return outputs

    return call


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
