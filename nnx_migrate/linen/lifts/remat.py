"""``nn.remat`` (``nn.checkpoint``): compute again in the backward pass instead of keeping."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from flax import traceback_util

from .pack import Pack
from .targets import lift_transform

traceback_util.register_exclusion(__file__)


def checkpoint(
    target: Any,
    variables: Any = True,
    rngs: Any = True,
    concrete: bool = False,
    prevent_cse: bool = True,
    static_argnums: int | tuple[int, ...] = (),
    policy: Callable[..., bool] | None = None,
    methods: Any = None,
) -> Any:
    """``jax.checkpoint`` of a module class, or of a function that takes a module first.

    As ``flax.linen.checkpoint`` (flax 0.12.8).

    Args:
      target: a module class or a function of a module.
      variables: collections the function may see.
      rngs: names of the keys it may see.
      concrete: no longer possible.
      prevent_cse: keep the compiler from undoing it; not needed inside ``scan``.
      static_argnums: positions of arguments that are no arrays, the module being number 0.
      policy: what may be kept, as of ``jax.checkpoint``.
      methods: methods of a class to lift instead of ``__call__``.

    Returns:
      A class (named ``Checkpoint...``), or a function, of the same signature.

    Raises:
      NotImplementedError: ``concrete`` is set.
    """
    return lift_transform(
        _checkpoint,
        target,
        variables=variables,
        rngs=rngs,
        concrete=concrete,
        prevent_cse=prevent_cse,
        static_argnums=jax.tree.map(lambda i: i - 1, static_argnums),
        policy=policy,
        methods=methods,
    )


remat = checkpoint


def remat_scopes(
    fn: Callable[..., Any],
    variables: Any = True,
    rngs: Any = True,
    concrete: bool = False,
    prevent_cse: bool = True,
    static_argnums: Any = (),
    policy: Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """The checkpoint of ``fn(scopes, *args)``; ``static_argnums`` count ``args`` only."""

    def run(scopes: Any, *args: Any, **kwargs: Any) -> Any:
        if concrete:
            raise NotImplementedError(
                "The concrete argument is deprecated. Use static_argnums instead. for more "
                "information, see https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html"
            )
        pack = Pack(scopes, (variables,), (variables,), (rngs,), "remat")
        body = jax.checkpoint(
            functools.partial(pack.run, fn),
            # The variables and the keys come first.
            static_argnums=jax.tree.map(lambda i: i + 2, static_argnums),
            prevent_cse=prevent_cse,
            policy=policy,
        )
        y, out = body(pack.variables, pack.rngs, *args, **kwargs)
        pack.publish(out)
        return y

    return run


def _checkpoint(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return remat_scopes(fn, **options)


_checkpoint.__name__ = "checkpoint"
