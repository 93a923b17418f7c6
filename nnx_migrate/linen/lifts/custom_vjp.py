"""``nn.custom_vjp``: a function of a module with a backward pass of one's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from flax import traceback_util

from .axes import warn_of_kwargs
from .pack import Pack
from .targets import lift_function

traceback_util.register_exclusion(__file__)


def custom_vjp(
    fn: Callable[..., Any],
    forward_fn: Callable[..., Any],
    backward_fn: Callable[..., Any],
    grad_vars: Any = "params",
    nondiff_argnums: Any = (),
) -> Callable[..., Any]:
    """``jax.custom_vjp`` of a function that takes a module first.

    As ``flax.linen.custom_vjp`` (flax 0.12.8).

    Args:
      fn: ``(module, *args)`` to the value.
      forward_fn: the same to the value and what the backward pass needs; for ``nn.vjp`` to be
        used in.
      backward_fn: ``(*nondiff args, what it needs, cotangent)`` to ``(gradients of variables,
        *of args)``; it gets no module.
      grad_vars: collections to differentiate by.
      nondiff_argnums: positions of arguments that are no arrays, the module being number 0.

    Returns:
      A function of ``fn``'s signature.
    """

    def shared_forward_fn(*args: Any, keeps: bool, **kwargs: Any) -> Any:
        return forward_fn(*args, **kwargs) if keeps else fn(*args, **kwargs)

    return lift_function(
        _custom_vjp,
        shared_forward_fn,
        backward_fn=backward_fn,
        grad_vars=grad_vars,
        nondiff_argnums=nondiff_argnums,
        multi_scope=False,
    )


def _custom_vjp(
    fn: Callable[..., Any], backward_fn: Callable[..., Any], grad_vars: Any, nondiff_argnums: Any
) -> Callable[..., Any]:
    """``fn(scope, *args, keeps)`` gives the value, or with ``keeps`` what is kept beside it."""

    def call(scope: Any, *args: Any, **kwargs: Any) -> Any:
        warn_of_kwargs("custom_vjp", kwargs)
        pack = Pack([scope], (grad_vars, True), (grad_vars, True), (True,), "custom_vjp")
        by, others = pack.variables

        def run(by: Any, *args: Any, keeps: bool) -> Any:
            def of_scope(inner: list[Any], *args: Any) -> Any:
                return fn(inner[0], *args, keeps=keeps)

            return pack.run(of_scope, (by, others), pack.rngs, *args)

        def forward(by: Any, *args: Any) -> Any:
            (y, residuals), out = run(by, *args, keeps=True)
            return (y, out), residuals

        def backward(*arguments: Any) -> tuple[Any, ...]:
            *static, residuals, (cotangent, _) = arguments
            of_variables, *of_args = backward_fn(*static, residuals, cotangent)
            return ((of_variables,), *of_args)

        f = jax.custom_vjp(functools.partial(run, keeps=False), nondiff_argnums=nondiff_argnums)
        f.defvjp(forward, backward)
        y, out = f(by, *args)
        pack.publish(out)
        return y

    return call


_custom_vjp.__name__ = "custom_vjp"
