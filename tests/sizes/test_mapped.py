"""jax.vmap, jax.lax.scan and jax.tree.map: the function runs on one slice; ``map``: on each item."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, in_features, problems, sizes_of

HELPERS = """
def halves(x):
    n, d = x.shape
    return x.reshape(n * 2, d // 2)

def both(x, y):
    return jnp.concatenate([x, y], axis=-1)

@jax.vmap
def one_more(x):
    return x[..., None]

@functools.partial(jax.vmap, in_axes=(0, None))
def against(x, y):
    return x @ y
"""
MADE = "z = jnp.zeros((4, 6, 8))"


@pytest.mark.parametrize(
    ("made", "size"),
    [
        ("jax.vmap(halves)(z)", "4"),
        ("jax.vmap(halves, in_axes=0, out_axes=2)(z)", "4"),
        ("jax.vmap(halves, in_axes=2)(z)", "3"),
        ("jax.vmap(lambda a: a.reshape(-1))(z)", "48"),
        ("jax.vmap(both, in_axes=(0, None))(z, jnp.zeros((6, 3)))", "11"),
        ("jax.vmap(lambda a: (a.T, a))(z)[0]", "6"),
        ("one_more(z)", "1"),
        ("against(z, jnp.zeros((8, 5)))", "5"),
        ("jax.lax.scan(lambda c, a: (c, a[:, :3]), z[0], z)[0]", "8"),
        ("jax.lax.scan(lambda c, a: (c, a[:, :3]), z[0], z)[1]", "3"),
        ("jax.tree.map(lambda a: a[..., :2], (z, z))[1]", "2"),
        ("jax.tree.map(lambda a: a[..., :2], {'a': z})['a']", "2"),
        ("[*map(lambda a: a[..., :2], [z, z])][1]", "2"),
        ("list(map(both, [z], [z[..., :3]]))[0]", "11"),
    ],
)
def test_the_last_axis_is_known(made: str, size: str) -> None:
    found = sizes_of(compact(f"{MADE}\nreturn nn.Dense(3)({made})", before=HELPERS))
    assert problems(found) == []
    assert in_features(found) == [size]


@pytest.mark.parametrize(
    "made",
    [
        "jax.vmap(halves, in_axes=axes)(z)",
        "jax.vmap(halves, out_axes=axes)(z)",
        "jax.vmap(both, in_axes=(0,))(z, z)",
        "jax.vmap(halves, in_axes=3)(z)",
        "jax.vmap(mystery)(z)",
        "jax.lax.scan(mystery, z, z)[1]",
        "jax.tree.map(both, z, z)",
        "tuple(map(halves, mystery(z)))[0]",
        "jax.tree.map(halves, mystery(z))",
    ],
)
def test_a_last_axis_that_nobody_knows_becomes_an_argument(made: str) -> None:
    found = sizes_of(compact(f"{MADE}\nreturn nn.Dense(3)({made})", "", "x, axes", HELPERS))
    assert in_features(found) == ["Dense_0_in_features"]


@pytest.mark.parametrize(
    "built",
    [
        "jax.vmap(lambda a: nn.Dense(3)(a))(x)",
        "jax.lax.scan(lambda c, a: (nn.Dense(3)(c), None), x, None)",
        "[*map(lambda a: nn.Dense(3)(a), [x, x])][0]",
    ],
)
def test_a_submodule_built_inside_is_a_problem(built: str) -> None:
    found = problems(sizes_of(compact(f"return {built}")))
    assert len(found) == 1
    assert found[0].startswith("a submodule is built inside ")
