"""``linen.cond`` and ``linen.switch``: one of several functions of a module runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from nnx_migrate.nn.lifts.pure import PureCall
from nnx_migrate.nn.variables.parts import Values

Branch = Callable[..., Any]


def cond(pred: Any, true_fun: Branch, false_fun: Branch, module: Any, *operands: Any) -> Any:
    """``true_fun(module, *operands)`` where ``pred`` holds, else ``false_fun(module, *operands)``.

    ``linen.cond`` (flax 0.12.8, linen/transforms.py): the module has afterwards what the branch that
    ran made of its variables; both must leave the same structure. A bound method stands for its
    function.

    Args:
      pred: a boolean scalar.

    Raises:
      ValueError: a branch makes a variable that the module does not have.
      TypeError: the branches give different structures, shapes or dtypes (from ``jax.lax.cond``).
    """

    def choose(branches: Sequence[Branch], *values: Any) -> Any:
        return jax.lax.cond(pred, *branches, *values)

    return _run(choose, (true_fun, false_fun), module, operands)


def switch(index: Any, branches: Sequence[Branch], module: Any, *operands: Any) -> Any:
    """``branches[index](module, *operands)``, the index clamped as in ``jax.lax.switch``.

    ``linen.switch``; what :func:`cond` says of variables holds here.

    Args:
      index: an integer scalar.
      branches: functions, or bound methods, that take the module first.

    Raises:
      ValueError: a branch makes a variable that the module does not have.
      TypeError: the branches give different structures, shapes or dtypes.
    """

    def choose(branches: Sequence[Branch], *values: Any) -> Any:
        return jax.lax.switch(index, branches, *values)

    return _run(choose, tuple(branches), module, operands)


def _run(
    choose: Callable[..., Any], branches: Sequence[Branch], module: Any, operands: tuple[Any, ...]
) -> Any:
    lifted = PureCall.of(module, operands, {})
    parts = lifted.parts
    values = parts.values() | parts.random_state()
    tallies = {one.count: one.node.tally for one in parts.streams if hasattr(one.node, "tally")}
    before = {index: tally.draws for index, tally in tallies.items()}

    def drawn() -> Values:
        """Counts of streams that draw Linen's keys: Linen counts the draws of every branch."""
        return {
            index: values[index] + (tally.draws - before[index]) for index, tally in tallies.items()
        }

    def pure(function: Branch, *args: Any) -> tuple[Any, Values]:
        outputs, copies = lifted.run(unbound(function), values | drawn(), args, {})
        # All values: branches may change different ones, and jax hands through what none changes.
        after = parts.read(copies)
        return outputs, {index: one for index, one in after.items() if index not in tallies}

    pures = [functools.partial(pure, one) for one in branches]
    outputs, after = choose(pures, *lifted.args)
    parts.put_back({index: one for index, one in after.items() if one is not values[index]})
    parts.put_back(drawn())
    return outputs


def unbound(function: Branch) -> Branch:
    """The function of a bound method, which is called with a copy of its module."""
    found: Branch = getattr(function, "__func__", function)
    return found
