"""Names that older packages use and newer jax has dropped; installed by case files that need them.

Nothing here changes what a function computes: each shim translates an old spelling.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import types
from typing import Any


def restore_clip_names() -> None:
    """Let ``jax.numpy.clip`` take ``a``, ``a_min`` and ``a_max`` again (dropped in jax 0.7)."""
    _rename_arguments("clip", {"a": "arr", "a_min": "min", "a_max": "max"})


def restore_reshape_names() -> None:
    """Let ``jax.numpy.reshape`` take ``newshape`` again (dropped in jax 0.5)."""
    _rename_arguments("reshape", {"newshape": "shape"})


def _rename_arguments(function: str, renamed: dict[str, str]) -> None:
    import jax.numpy as jnp

    original = getattr(jnp, function)

    @functools.wraps(original)
    def translated(*arguments: Any, **keywords: Any) -> Any:
        named = {renamed.get(name, name): value for name, value in keywords.items()}
        return original(*arguments, **named)

    setattr(jnp, function, translated)


def restore_xla_names() -> None:
    """Give ``jax.interpreters.xla`` the table that tensorflow-probability 0.25 registers types in."""
    import jax._src.core
    import jax.interpreters.xla

    if not hasattr(jax.interpreters.xla, "pytype_aval_mappings"):
        table = jax._src.core.pytype_aval_mappings
        jax.interpreters.xla.pytype_aval_mappings = table  # type: ignore[attr-defined]


def restore_key_array() -> None:
    """Give ``jax.random`` the name ``KeyArray`` again, which old annotations use."""
    import jax

    if not hasattr(jax.random, "KeyArray"):
        jax.random.KeyArray = jax.Array  # type: ignore[attr-defined]


def stand_in(name: str) -> None:
    """Let ``import name`` succeed where the package is absent and no case reaches into it."""
    if name not in sys.modules and importlib.util.find_spec(name) is None:
        sys.modules[name] = types.ModuleType(name)
