"""What an input of a call shows of a size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import pytest

from nnx_migrate.linen.core.sizes.declaration import Size


@pytest.mark.parametrize(
    ("size", "value", "expected"),
    [
        (Size(), jnp.ones((2, 3)), 3),
        (Size(axis=-2), jnp.ones((2, 3)), 2),
        (Size(axis=None), jnp.ones((2, 3)), (2, 3)),
        (Size(), [1.0, 2.0], 2),
        (Size(axis=None), 0.5, ()),
        (Size("x.a"), SimpleNamespace(a=jnp.ones(4)), 4),
        # Not shown: the input has no such axis, or is no array.
        (Size(), jnp.float32(0.5), None),
        (Size(), 3, None),
        (Size(axis=-3), jnp.ones((2, 3)), None),
        (Size(axis=2), jnp.ones((2, 3)), None),
        (Size(), {"image": jnp.ones(4)}, None),
        (Size(), SimpleNamespace(a=jnp.ones(4)), None),
        (Size(), "train", None),
        (Size(), None, None),
    ],
)
def test_a_size_is_read_off_an_array(size: Size, value: Any, expected: Any) -> None:
    assert size.read({"x": value}) == expected
