"""``linen.while_loop``: a function of a module repeated while another one says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from nnx_migrate.nn.lifts.branches import unbound
from nnx_migrate.nn.lifts.groups import groups_of
from nnx_migrate.nn.lifts.pure import PureCall
from nnx_migrate.nn.lifts.stacking import Stacking, options_of
from nnx_migrate.nn.variables.parts import CAPTURES, Values, hide_captures


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    module: Any,
    init: Any,
    carry_variables: Any = False,
    broadcast_variables: Any = True,
    split_rngs: Mapping[Any, bool] | None = None,
) -> Any:
    """``carry = body_fn(module, carry)`` while ``cond_fn(module, carry)`` holds, from ``init`` on.

    ``linen.while_loop`` (flax 0.12.8, linen/transforms.py). The loop is one ``jax.lax.while_loop``.

    Args:
      carry_variables: collections handed from step to step, which the body may change.
      broadcast_variables: collections that every step sees and none changes.
      split_rngs: per stream, whether every step draws its own keys.

    Returns:
      The last carry; the module has the carried variables of the last step.

    Raises:
      ValueError: a variable is in no group, or the body changed one that is not carried.
    """
    lifted = PureCall.of(module, (), {})
    parts = lifted.parts
    stacking = Stacking(splits=options_of(split_rngs, bool))
    groups = groups_of(parts, stacking, broadcast_variables, carry_variables)
    values = parts.values()
    hidden = {  # sowing into what is not carried does nothing in Linen
        type(parts.variables[index])
        for index, path in enumerate(parts.paths)
        if CAPTURES in path and index not in groups.carried
    }

    def prepare(copies: Any) -> None:
        for one in copies:
            hide_captures(one, hidden)

    def inner(step: Any, carried: Values) -> Values:
        keys = {index: jax.random.fold_in(key, step) for index, key in groups.keys.items()}
        return groups.constants | carried | keys

    def goes_on(state: Any) -> Any:
        step, carried, carry = state
        given = inner(-step, carried)
        outputs, _ = lifted.changes(unbound(cond_fn), given, (carry,), {}, prepare)
        return outputs

    def body(state: Any) -> Any:
        step, carried, carry = state
        given = inner(step, carried)
        carry, changed = lifted.changes(unbound(body_fn), given, (carry,), {}, prepare)
        groups.note(parts, changed)
        return step + 1, {index: changed.get(index, one) for index, one in carried.items()}, carry

    start = {index: values[index] for index in groups.carried}
    _, carried, carry = jax.lax.while_loop(goes_on, body, (0, start, init))
    parts.put_back({index: one for index, one in carried.items() if one is not values[index]})
    groups.advance(parts)
    return carry
