"""Floating-point operations of a module's call, as XLA estimates them for the traced program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from nnx_migrate.linen.core.tables.values import abstract

NOT_COUNTED = -1


def get_flops(function: Callable[..., Any], *args: Any) -> int:
    """What XLA says a call costs; 0 where it does not say. Nothing is compiled or run."""
    cost = jax.jit(function).lower(*args).cost_analysis() or {}
    return int(cost.get("flops", 0))


def call_flops(call: Any, forward: bool, backward: bool) -> tuple[int, int]:
    """Operations of one recorded call and of its vector-Jacobian product.

    Args:
      call: a `CallInfo`; its arguments are stand-ins.
      forward: whether to count the call.
      backward: whether to count its gradient.

    Returns:
      the two numbers, `NOT_COUNTED` for what was not asked for.
    """
    if not forward and not backward:
        return NOT_COUNTED, NOT_COUNTED
    initialise, apply, keys, arrays = _functions(call)
    variables = jax.eval_shape(initialise, keys, arrays)

    def pulled_back(*inputs: Any) -> Any:
        outputs, vjp = jax.vjp(apply, *inputs)
        return vjp(outputs)

    return (
        get_flops(apply, variables, keys, arrays) if forward else NOT_COUNTED,
        get_flops(pulled_back, variables, keys, arrays) if backward else NOT_COUNTED,
    )


def _functions(call: Any) -> tuple[Callable[..., Any], Callable[..., Any], Any, Any]:
    """Init and apply of the call as functions of keys and arrays; both of these, abstractly."""
    leaves, treedef = jax.tree.flatten(jax.tree.map(abstract, (call.args, call.kwargs)))
    array_indexes = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.ShapeDtypeStruct)]

    def inputs(arrays: list[Any]) -> Any:
        whole = list(leaves)
        for i, array in zip(array_indexes, arrays, strict=True):
            whole[i] = array
        return jax.tree.unflatten(treedef, whole)

    def initialise(keys: Any, arrays: list[Any]) -> Any:
        args, kwargs = inputs(arrays)
        return call.module.init(keys, *args, method=call.method, mutable=call.mutable, **kwargs)

    def apply(variables: Any, keys: Any, arrays: list[Any]) -> Any:
        args, kwargs = inputs(arrays)
        return call.module.apply(
            variables, *args, rngs=keys, method=call.method, mutable=call.mutable, **kwargs
        )

    keys = {name: _abstract_key(key) for name, key in (call.rngs or {}).items()}
    return initialise, apply, keys, [leaves[i] for i in array_indexes]


def _abstract_key(key: Any) -> jax.ShapeDtypeStruct:
    """The key of a stream; of a call inside a lift it is a tracer, of which only the type lives on."""
    key_data = getattr(key, "rng", key)  # a LazyRng holds a key and what is to be folded into it
    return jax.ShapeDtypeStruct(key_data.shape, key_data.dtype)
