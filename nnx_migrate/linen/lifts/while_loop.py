"""``nn.while_loop``: a loop over a module for as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from flax import traceback_util
from flax.core import FrozenDict

from .axes import filters_and_values, map_keys
from .pack import Groups, Pack
from .targets import lift_direct_transform

traceback_util.register_exclusion(__file__)


def while_loop(
    cond_fn: Callable[[Any, Any], Any],
    body_fn: Callable[[Any, Any], Any],
    mdl: Any,
    init: Any,
    carry_variables: Any = False,
    broadcast_variables: Any = True,
    split_rngs: Mapping[Any, bool] = FrozenDict(),
) -> Any:
    """``jax.lax.while_loop`` of functions ``(module, state)``.

    As ``flax.linen.while_loop`` (flax 0.12.8). No variables can be made in the loop.

    Args:
      cond_fn: whether to go on.
      body_fn: the next state.
      mdl: the module.
      init: the first state.
      carry_variables: collections that ``body_fn`` may change.
      broadcast_variables: collections that both may read.
      split_rngs: for each key name, whether it differs from step to step.

    Returns:
      The last state.
    """
    return lift_direct_transform(
        _while_loop,
        (cond_fn, body_fn),
        mdl,
        init,
        carry_variables,
        broadcast_variables,
        split_rngs,
    )


def _while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    scopes: Any,
    init: Any,
    carry_variables: Any,
    broadcast_variables: Any,
    split_rngs: Mapping[Any, bool],
) -> Any:
    key_filters, splits = filters_and_values(split_rngs)
    reads = (carry_variables, broadcast_variables)
    pack = Pack(scopes, reads, (carry_variables,), key_filters, "while_loop")
    carry_trees, broadcast_trees = pack.variables

    def keys_of(step: Any) -> Groups:
        return tuple(
            map_keys(lambda key: jax.random.fold_in(key, step), group) if is_split else group
            for group, is_split in zip(pack.rngs, splits, strict=True)
        )

    def goes_on(state: Any) -> Any:
        step, carry_trees, value = state
        inner, _ = pack.open((carry_trees, broadcast_trees), keys_of(-step), mutable=False)
        return cond_fn(inner, value)

    def body(state: Any) -> Any:
        step, carry_trees, value = state
        value, (carry_trees,) = pack.run(
            body_fn, (carry_trees, broadcast_trees), keys_of(step), value
        )
        return step + 1, carry_trees, value

    _, carry_trees, value = jax.lax.while_loop(goes_on, body, (0, carry_trees, init))
    pack.publish((carry_trees,))
    return value


_while_loop.__name__ = "while_loop"
