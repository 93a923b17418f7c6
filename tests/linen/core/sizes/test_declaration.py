"""What an input of a call shows of a size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

from nnx_migrate.linen.core.sizes.declaration import Size


class Pair(NamedTuple):
    one: Any
    other: Any

    @property
    def both(self) -> Any:
        return jnp.concatenate([self.one, self.other])


@pytest.mark.parametrize(
    ("size", "value", "expected"),
    [
        (Size(), jnp.ones((2, 3)), 3),
        (Size(axis=-2), jnp.ones((2, 3)), 2),
        (Size(axis=None), jnp.ones((2, 3)), (2, 3)),
        (Size(), [1.0, 2.0], 2),
        (Size(axis=None), 0.5, ()),
        (Size("x.a"), SimpleNamespace(a=jnp.ones(4)), 4),
        (Size("x[-1]"), (jnp.ones(2), jnp.ones(4)), 4),
        (Size("x[0]"), jax.ShapeDtypeStruct((2, 3), jnp.float32), 3),
        (Size("x.both"), Pair(jnp.ones(2), jnp.ones(4)), 6),
        (Size("x.both"), Pair(*(jax.ShapeDtypeStruct((n,), jnp.float32) for n in (2, 4))), 6),
        # The shapes of all arrays that it holds.
        (Size(axis=None), [jnp.ones((2, 3)), jnp.ones((2, 5))], [(2, 3), (2, 5)]),
        (Size(axis=None), {"a": jnp.ones(4), "b": 1.0}, {"a": (4,), "b": ()}),
        (Size(axis=None), {"a": jnp.ones(4), "b": "train"}, None),
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
