"""What of a call's inputs is an array, and its shape."""

from __future__ import annotations

from typing import Any

import jax


def is_array(value: Any) -> bool:
    """Whether it has a shape and a dtype; ``jnp.float32`` has a dtype, ``np.float32`` both, as types."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def shapes_in(inputs: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of the arrays that a call is given."""
    return tuple(one.shape for one in jax.tree.leaves(inputs) if is_array(one))
