"""``nn.named_call``: a method under the module's name in profiles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from flax import traceback_util

from nnx_migrate.linen.core.wrapping import derive_profiling_name, named_call_enabled

traceback_util.register_exclusion(__file__)


def named_call(class_fn: Callable[..., Any], force: bool = True) -> Callable[..., Any]:
    """Runs a method under ``jax.named_call``, with the name of its module.

    As ``flax.linen.named_call`` (flax 0.12.8).

    Args:
      class_fn: the method.
      force: also where named calls are disabled (``nn.disable_named_call``).
    """

    @functools.wraps(class_fn)
    def named(module: Any, *args: Any, **kwargs: Any) -> Any:
        if module._state.in_setup or not (force or named_call_enabled()):
            return class_fn(module, *args, **kwargs)
        name = derive_profiling_name(module, class_fn)
        return jax.named_call(class_fn, name=name)(module, *args, **kwargs)

    return named
