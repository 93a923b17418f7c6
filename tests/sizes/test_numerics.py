"""Functions of several arrays, shapes with an unknown beginning, padding."""

from __future__ import annotations

import pytest

from tests.sizes.inference import arguments, compact, dims, in_features, problems, sizes_of

HEAD = "z = jnp.zeros((4, 6, 8))\nreturn nn.Dense(3)({})"


@pytest.mark.parametrize(
    ("made", "size"),
    [
        ("nn.dtypes.promote_dtype(z, None, x, dtype=None)[0]", "8"),
        ("jnp.kron(z, jnp.zeros((1, 1, 3)))", "24"),
        ("jnp.outer(jnp.zeros(5), jnp.zeros(7))", "7"),
        ("nn.normalization._normalize(self, z, x, x, (0,), (1,))", "8"),
        ("jax.random.categorical(jax.random.key(0), z)", "6"),
        ("jnp.zeros(jnp.shape(z))", "8"),
        ("jnp.pad(z, ((0, 0), (1, 1), (0, 0)))", "8"),
        ("jnp.pad(z, ((0, 0), (1, 1), (2, 3)))", "13"),
        ("jnp.pad(mystery(z), ((0, 0), (1, 1), (0, 0))) + z", "8"),
        ("jnp.roll(z, x)", "8"),
        ("jnp.concatenate([x, z], axis=-2)", "8"),
        ("einops.einsum(z, jnp.zeros((8, 5)), 'batch n d, d out -> batch n out')", "5"),
    ],
)
def test_the_last_axis_is_known(made: str, size: str) -> None:
    found = sizes_of(compact(HEAD.format(made), before="import einops"))
    assert problems(found) == []
    assert in_features(found) == [size]


@pytest.mark.parametrize(
    "made",
    [
        "jnp.kron(z, x)",
        "jnp.outer(z, z)",
        "jax.random.categorical(x, z, axis=0)",
        "jax.random.categorical(x, z, shape=(4,))",
        "jnp.pad(z, 1)",
        "jnp.pad(z, [(1, 1)])",
        "jnp.pad(z, ((0, 0), (1, 1), (x, 0)))",
        "einops.einsum(z, x, pattern)",
        "einops.einsum(z, x, 'b (n m) d, d -> b n m')",
    ],
)
def test_a_last_axis_that_nobody_knows_becomes_an_argument(made: str) -> None:
    found = sizes_of(compact(HEAD.format(made), "", "x, pattern", "import einops"))
    assert in_features(found) == ["Dense_0_in_features"]


def test_a_shape_may_go_on_from_a_field() -> None:
    body = """
        kernel = self.param("kernel", nn.initializers.ones, self.window + (x.shape[-1], 5))
        return nn.Dense(3)(kernel)
    """
    found = sizes_of(compact(body, fields="window: tuple"))
    assert in_features(found) == ["5"]
    assert arguments(found) == ["in_features"]
    assert "in_features" in dims(found)
