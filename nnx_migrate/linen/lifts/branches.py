"""``nn.cond`` and ``nn.switch``: one of several functions of a module."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import traceback_util

from .axes import warn_of_kwargs
from .pack import Pack
from .targets import lift_direct_transform

traceback_util.register_exclusion(__file__)


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    mdl: Any,
    *operands: Any,
    variables: Any = True,
    rngs: Any = True,
) -> Any:
    """``jax.lax.cond`` of two functions ``(module, *operands)``.

    As ``flax.linen.cond`` (flax 0.12.8). Both have to make the same variables, of the same shapes
    and dtypes.

    Args:
      pred: a boolean scalar.
      true_fun: called if it is true.
      false_fun: called if it is not.
      mdl: the module.
      *operands: what else the functions take.
      variables: collections they may see.
      rngs: names of the keys they may see.
    """

    def choose(*operands: Any) -> Any:
        pred, true_fun, false_fun, *rest = operands
        return jax.lax.cond(pred, true_fun, false_fun, *rest)

    return _branch("cond", choose, (true_fun, false_fun), mdl, pred, operands, variables, rngs)


def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    mdl: Any,
    *operands: Any,
    variables: Any = True,
    rngs: Any = True,
) -> Any:
    """``jax.lax.switch`` of functions ``(module, *operands)``.

    As ``flax.linen.switch`` (flax 0.12.8). All have to make the same variables.

    Args:
      index: an integer scalar: which function.
      branches: the functions.
      mdl: the module.
      *operands: what else the functions take.
      variables: collections they may see.
      rngs: names of the keys they may see.
    """

    def choose(index: Any, *rest: Any) -> Any:
        return jax.lax.switch(index, rest[: len(branches)], *rest[len(branches) :])

    return _branch("switch", choose, tuple(branches), mdl, index, operands, variables, rngs)


def _branch(
    name: str,
    choose: Callable[..., Any],
    branches: tuple[Callable[..., Any], ...],
    mdl: Any,
    which: Any,
    operands: tuple[Any, ...],
    variables: Any,
    rngs: Any,
) -> Any:
    """One of the branches, by ``choose(which, *pure branches, *operands)``."""

    def transform(*arguments: Any, **kwargs: Any) -> Any:
        fns, (scopes, which, *operands) = arguments[: len(branches)], arguments[len(branches) :]
        warn_of_kwargs(name, kwargs)
        pack = Pack(scopes, (variables,), (variables,), (rngs,), name)
        pure = [functools.partial(pack.run, fn, pack.variables, pack.rngs) for fn in fns]
        y, out = choose(which, *pure, *operands)
        pack.publish(out)
        return y

    transform.__name__ = name
    return lift_direct_transform(transform, branches, mdl, which, *operands)
