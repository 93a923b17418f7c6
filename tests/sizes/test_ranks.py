"""Axes counted from the front: which is the last one depends on a rank that the code must prove."""

from __future__ import annotations

import pytest

from tests.sizes.inference import arguments, compact, in_features, sizes_of

ASKED = "Dense_0_in_features"
THREE = [
    "a, b, c = x.shape",
    "z = x.transpose(0, 2, 1)",
    "z = jnp.einsum('btc,cd->btd', x, jnp.zeros((4, 5)))",
    "z = nn.Conv(5, (3,))(x)",
    "z = nn.max_pool(x, (2,))",
    "z = jnp.concatenate([jnp.zeros((2, 1, 6)), x], axis=1)",
    "z = jnp.pad(x, ((0, 0), (1, 1), (0, 0)))",
    "z = x[:, :, 0]",
    "z = x.shape[:3]",
    "z = x.shape[-3:]",
    "z = nn.LayerNorm(use_scale=False, use_bias=False)(x) + 1\na, b, c = z.shape",
    "for i in range(self.n):\n    a, b, c = x.shape",
]
NOT_THREE = [
    "if self.flag:\n    a, b, c = x.shape",
    "try:\n    a, b, c = x.shape\nexcept ValueError:\n    pass",
    "while x.sum() > 0:\n    a, b, c = x.shape",
    "z = self.flag and x.transpose(0, 2, 1)",
    "if self.flag:\n    return x\na, b, c = x.shape",
    "a, b, *c = x.shape",
    "z = x[:, 0]",
    "z = x.shape[1:]",
    "z = nn.LayerNorm(use_scale=False, use_bias=False)(x)",
    "a, b, c = jax.vmap(lambda z: z.T)(y).shape",
]
USES = [
    "x = x[:, 0]",
    "x = x[:, -1]",
    "x = x[:, ::2]",
    "x = x[:, None, 0]",
    "x = x.mean(1)",
    "x = jnp.max(x, axis=1, keepdims=True)",
    "x = jnp.swapaxes(x, 0, 1)",
    "x = jnp.concatenate([x, x], axis=1)",
    "x = jnp.stack([x, x], axis=2)",
    "x = jnp.expand_dims(x, 2)",
    "x = jnp.split(x, 2, axis=1)[0]",
    "x = jnp.repeat(x, 2, axis=1)",
    "x = jax.vmap(lambda z: z, in_axes=1)(x)",
]


def asked(body: str) -> list[str | None]:
    """``in_features`` of a Dense at the end."""
    fields, given = "flag: bool;n: int", "x, y"
    return in_features(sizes_of(compact(f"{body}\nreturn nn.Dense(3)(x)", fields, given)))[-1:]


@pytest.mark.parametrize("use", USES)
def test_without_a_proof_the_size_is_asked_for(use: str) -> None:
    assert asked(use) == [ASKED]


@pytest.mark.parametrize("use", USES)
def test_a_proof_before_or_after_keeps_the_last_axis(use: str) -> None:
    assert asked(f"a, b, c = x.shape\n{use}") == ["in_features"]
    assert asked(f"z = x\n{use}\na, b, c = z.shape") == ["in_features"]


@pytest.mark.parametrize("proof", THREE)
def test_what_proves_three_axes(proof: str) -> None:
    found = asked(f"{proof}\nx = x.mean(1)")
    assert found in (["in_features"], ["x_features"])


@pytest.mark.parametrize("line", NOT_THREE)
def test_what_proves_nothing(line: str) -> None:
    assert asked(f"{line}\nx = x.mean(1)") == [ASKED]


def test_an_annotation_proves_nothing() -> None:
    body = "x = x.mean(1)\nreturn nn.Dense(3)(x)"
    result = sizes_of(compact(body, arguments="x: \"Float[Array, 'b t c']\""))
    assert in_features(result) == [ASKED]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = nn.Conv(4, (3, 3))(x).mean(axis=(1, 2))", "4"),
        ("x = nn.Dense(8)(x)\na, b, c = x.shape\nx = x[:, 0]", "8"),
        ("x = nn.Embed(9, 8)(x)\na, b, c = x.shape\nx = x[:, 0]", "8"),
        ("x = jnp.swapaxes(x, 1, 2)\na, b, c = x.shape", "x_shape[-2]"),
        ("x = x[:, :2]\na, b = x.shape", "min(in_features, 2)"),
        ("x = x.mean(axis=(0, 1))", "in_features"),  # the Dense behind it takes no number
    ],
)
def test_a_known_rank_says_which_axis_is_the_last(body: str, expected: str) -> None:
    assert asked(body) == [expected]


def test_callers_hand_in_what_a_class_cannot_prove() -> None:
    source = """
class Pooler(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x[:, 0])

class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(10, 6)(tokens)
        batch, length, width = x.shape
        return Pooler()(x)
"""
    again = source + "\nplain = Pooler()\n"  # what calls this, nobody sees
    assert arguments(sizes_of(again, "Pooler")) == [ASKED]
    result = sizes_of(again)
    assert arguments(result) == []
    assert [dict(one.sizes) for one in result.sites.values()][-1] == {ASKED: "6"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = x + y", ASKED),  # either may be 1
        ("x = x + nn.Dense(8)(y)", "8"),
        ("x = x @ y", ASKED),  # the last axis of a vector is contracted
        ("x = x[..., None] * x[:, None]", ASKED),
    ],
)
def test_sizes_of_two_inputs(body: str, expected: str) -> None:
    assert asked(body) == [expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = jnp.ones((4, 1)) * y", ASKED),
        ("x = jnp.concatenate([x, jnp.ones((4, 1)) * y], -1)", ASKED),
        ("x = jnp.multiply(jnp.ones((4, 1)), y)", ASKED),
        ("x = y * jnp.linalg.pinv(x)", ASKED),
        ("x = jnp.ones((4, 1)) * y + y.shape[-1]", "y_features"),
        ("z = nn.Dense(5)(y)\nx = jnp.ones((4, 1)) * y", "y_features"),
        ("z = y[..., :3]\nx = jnp.multiply(jnp.ones((4, 1)), y)", "y_features"),
        ("x = jnp.ones((4, 1)) * nn.Dense(5)(y)", "5"),
        ("x = y * 2.0", "y_features"),
    ],
)
def test_an_argument_that_may_be_a_number_has_no_last_axis(body: str, expected: str) -> None:
    assert asked(body) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "x = jnp.zeros((9, 8))[y]",
        "x = jnp.zeros((9, 8)).at[y].get()",
        "x = jnp.zeros((9, 2, 8))[y, :1]",
        "x = nn.Embed(9, 8)(y)",
        "x = jax.nn.one_hot(y, 8)",
        "x = nn.Dense(8)(self.flag)",
        "x = jnp.zeros(y.shape + (8,))",
    ],
)
def test_rows_of_a_table_have_an_axis_whatever_is_looked_up(body: str) -> None:
    assert asked(f"{body}\nx = x * unknown(x)") == ["8"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = y[None]", ASKED),
        ("x = (y * 2)[None]", ASKED),
        ("x = jnp.stack([y, y + 1])", ASKED),
        ("x = jnp.expand_dims(y, 0)", ASKED),
        ("x = jax.vmap(lambda a, b: b, in_axes=(0, None))(x, y)", ASKED),
        ("x = y[0][None]", ASKED),
        ("z = y.shape[-1]\nx = y[None]", "y_features"),
        ("x = y[None]\nz = nn.Dense(5)(y)", "y_features"),
        ("x = nn.Dense(5)(y)[None]", "5"),
        (
            (
                "k = self.param('k', nn.initializers.ones, (y.shape[-1], 5))\n"
                "x = jnp.stack([jax.lax.dot_general(y, k, (((y.ndim - 1,), (0,)), ((), ())))])"
            ),
            "5",
        ),
        ("x = y[None]\nz = nn.RNN(nn.GRUCell(5))(x)", "y_features"),
        ("x = y[None, :]", "y_features"),
        ("x = jnp.expand_dims(y, -1)", "1"),
        ("x = jax.vmap(lambda a: a * 2)(y)", "y_features"),
    ],
)
def test_an_axis_in_front_of_what_may_be_a_number_is_its_last(body: str, expected: str) -> None:
    assert asked(body) == [expected]
