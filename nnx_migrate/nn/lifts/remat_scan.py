"""``linen.remat_scan``: a deep stack of layers, recomputed piece by piece in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from nnx_migrate.nn.building.factory import Factory
from nnx_migrate.nn.lifts.methods import lift_calls
from nnx_migrate.nn.lifts.remat import remat
from nnx_migrate.nn.lifts.scan import scan

T = TypeVar("T")


def remat_scan(
    target: T,
    lengths: Sequence[int],
    *,
    policy: Callable[..., bool] | None = None,
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    variable_axes: Mapping[Any, int] | None = None,
    split_rngs: Mapping[Any, bool] | None = None,
) -> T:
    """``prod(lengths)`` layers of ``target``, whose ``__call__(carry)`` gives the next carry.

    One ``nnm.scan`` for each of ``lengths``, the outermost first, with ``jax.checkpoint`` between them:
    the backward pass stores the carries between the pieces, and computes those inside again
    (``linen.remat_scan``, flax 0.12.8, linen/transforms.py). Variables have one axis per length. The
    class is called ``Remat_scan<target>``.

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, or a factory of built-in layers.
      policy: as in ``jax.checkpoint``.
      variable_broadcast, variable_carry, variable_axes, split_rngs: as of :func:`scan`; by default
        every variable is stacked along axis 0 and every layer draws its own keys.

    Raises:
      TypeError: ``target`` is none of these.
      ValueError: there is no length.
    """
    if not lengths:
        raise ValueError("expected at least one length of remat_scan, found none")
    if isinstance(target, functools.partial):
        options = {name: value for name, value in locals().items() if name != "target"}
        inner = remat_scan(target.func, **options)
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    if not isinstance(target, type | Factory):
        raise TypeError(f"expected remat_scan to get an nnx.Module class, found {target!r}")
    given = {
        "variable_broadcast": variable_broadcast,
        "variable_carry": variable_carry,
        "variable_axes": {True: 0} if variable_axes is None else variable_axes,
        "split_rngs": {True: True} if split_rngs is None else split_rngs,
    }
    *outer, innermost = lengths
    stack: Any = scan(lift_calls(target, "", _as_step, {}), length=innermost, **given)
    for length in reversed(outer):
        piece = lift_calls(stack, "", _as_piece, {})
        stack = scan(remat(piece, policy=policy, prevent_cse=False), length=length, **given)
    stack = lift_calls(stack, "", _without_outputs, {})
    name = target.linen_name if isinstance(target, Factory) else target.__name__
    if isinstance(stack, Factory):
        return cast(T, Factory(f"Remat_scan{name}", stack))
    stack.__name__ = stack.__qualname__ = f"Remat_scan{name}"
    return cast(T, stack)


def _as_step(call: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    return lambda module, carry: (call(module, carry), ())


def _as_piece(call: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    return lambda module, carry: (call(module, carry)[0], ())


def _without_outputs(call: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    return lambda module, carry: call(module, carry)[0]
