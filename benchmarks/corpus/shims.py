"""Names that older packages use and newer jax has dropped; installed by case files that need them.

Nothing here changes what a function computes: each shim translates an old spelling.
"""

from __future__ import annotations

import functools
from typing import Any


def restore_clip_names() -> None:
    """Let ``jax.numpy.clip`` take ``a``, ``a_min`` and ``a_max`` again (dropped in jax 0.7)."""
    import jax.numpy as jnp

    clip = jnp.clip
    if hasattr(clip, "__wrapped_by_shim__"):
        return
    renamed = {"a": "arr", "a_min": "min", "a_max": "max"}

    @functools.wraps(clip)
    def translated(*arguments: Any, **keywords: Any) -> Any:
        named = {renamed.get(name, name): value for name, value in keywords.items()}
        return clip(*arguments, **named)

    translated.__wrapped_by_shim__ = True  # type: ignore[attr-defined]
    jnp.clip = translated


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
