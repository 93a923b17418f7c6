"""``linen.scan`` of a method: run it over an axis of its inputs, one set of parameters for all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from flax import nnx

from .recurrent import _from_front, _hashable, _matches, _to_front

Method = Callable[..., tuple[Any, Any]]


def scan_method(
    method: Method,
    *,
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    split_rngs: Mapping[str, bool] | None = None,
    in_axes: int | Sequence[int | None] | None = 0,
    out_axes: int = 0,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> Method:
    """``method(self, carry, *xs) -> (carry, ys)`` looped over ``in_axes`` of every array of ``xs``.

    ``linen.scan`` as a decorator, without ``variable_axes`` (flax 0.12.8, linen/transforms.py): the
    module's variables are the same in every step, or handed from step to step.

    Args:
      variable_broadcast, variable_carry: collections read and updated by the steps; every variable
        must be in one of them (collection filters as in Linen).
      split_rngs: per stream, whether every step draws its own key.
      in_axes: axis to loop over, for all of ``xs`` or for each; None passes an argument whole.
      out_axes: axis of ``ys`` along which the steps' results are stacked.

    Raises:
      ValueError: the module holds a variable that the loop would not see.
    """
    broadcast, carried = _hashable(variable_broadcast), _hashable(variable_carry)
    splits = dict(split_rngs or {})

    def is_carried(path: Any, value: Any) -> bool:
        kind = getattr(value, "type", type(value))
        if issubclass(kind, nnx.RngState):
            return splits.get(value.tag, False)
        collection = nnx.variable_name_from_type(kind, allow_register=True)
        if _matches(carried, collection):
            return True
        if _matches(broadcast, collection):
            return False
        raise ValueError(
            f"the variable '{'/'.join(map(str, path))}' is of collection '{collection}', which is "
            f"neither in {variable_broadcast=} nor in {variable_carry=}: name it in one of them"
        )

    @functools.wraps(method)
    def looped(self: Any, carry: Any, *xs: Any) -> tuple[Any, Any]:
        parts: Any = nnx.split(self, is_carried, ...)
        graphdef, changing, fixed = parts
        axes = [in_axes] * len(xs) if isinstance(in_axes, int | None) else list(in_axes)
        moved = [_moved(x, axis) for x, axis in zip(xs, axes, strict=True)]

        def step(state: Any, slices: Sequence[Any]) -> tuple[Any, Any]:
            changing, carry = state
            # A copy belongs to this trace, so that its variables may change in it.
            module = nnx.merge(graphdef, changing, fixed, copy=True)
            given = [x if axis is None else s for x, axis, s in zip(xs, axes, slices, strict=True)]
            carry, ys = method(module, carry, *given)
            return (nnx.state(module, is_carried), carry), ys

        (changing, carry), ys = jax.lax.scan(
            step, (changing, carry), moved, length=length, reverse=reverse, unroll=unroll
        )
        nnx.update(self, changing)
        for _, stream in nnx.iter_graph(self):
            if isinstance(stream, nnx.RngStream) and not splits.get(stream.tag, False):
                stream.count.set_value(stream.count[...] + 1)  # the next loop draws other keys
        return carry, jax.tree.map(lambda y: _from_front(y, out_axes % y.ndim), ys)

    return looped


def _moved(xs: Any, axis: int | None) -> Any:
    """Arrays with the axis to loop over in front; None in place of what is passed whole."""
    if axis is None:
        return None
    return jax.tree.map(lambda x: _to_front(x, axis % x.ndim), xs)
