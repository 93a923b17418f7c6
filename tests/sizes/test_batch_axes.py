"""Axes before the last two of a product of arrays, and pieces of arrays."""

from __future__ import annotations

import pytest

from tests.sizes.inference import carried, compact, in_features, sizes_of

ASKED = "Dense_0_in_features"


def last(body: str, fields: str = "h: int = 2;k: int = 1", given: str = "x, y") -> str | None:
    return in_features(sizes_of(compact(f"{body}\nreturn nn.Dense(3)(x)", fields, given)))[-1]


@pytest.mark.parametrize("product", ["x @ y", "jnp.matmul(x, y)"])
@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("(2, self.h, 3, 4)", "(2, self.h, 4, 5)", "self.h"),
        ("(2, self.h, 3, 4)", "(self.h, 4, 5)", "self.h"),
        ("(2, self.h, 3, 4)", "(2, self.k, 4, 5)", "self.h"),  # `k` is 1 by default
        ("(2, self.h, 3, 4)", "(2, 1, 4, 5)", "self.h"),
        ("(3, 4)", "(2, self.h, 4, 5)", "self.h"),
        ("(2, 1, 3, 4)", "(2, 1, 4, 5)", "1"),
        ("(2, -1, 3, 4)", "(2, 1, 4, 5)", ASKED),
    ],
)
def test_they_are_those_of_both(product: str, one: str, two: str, expected: str) -> None:
    body = f"x = x.reshape({one})\ny = y.reshape({two})\nx = {product}"
    assert last(f"{body}\nx = jnp.moveaxis(x, 1, -1)") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("q, k = x.reshape(2, 3, self.h)\nx = k", "self.h"),
        ("q, k = jnp.transpose(x.reshape(3, self.h, 2), (2, 0, 1))\nx = k", "self.h"),
        ("q, k = x\nx = k", "x_1_features"),  # it may be a pair
        ("q, *k = x.reshape(2, 3, self.h)\nx = k[0]", ASKED),
        ("x, y = jnp.split(nn.Dense(12)(x), self.h, -1)", "12 // self.h"),
        ("x, y = jnp.split(nn.Dense(12)(x), self.cuts, -1)", ASKED),  # they may be points
        ("x, y = jnp.split(x.reshape(4, 6), self.h)", "6"),
        ("x, y = jnp.array_split(nn.Dense(12)(x), self.h, -1)", ASKED),
    ],
)
def test_pieces(body: str, expected: str) -> None:
    found = last(body, "h: int = 2;cuts: Any = 2", "x")
    assert found == expected or (expected == ASKED and found is not None and "Dense" in found)


@pytest.mark.parametrize(
    ("query", "key", "cut", "expected"),
    [
        ("(2, 5, self.h, 4)", "(2, 7, self.h, 4)", "w", "7"),
        ("(2, 5, self.h, 4)", "(2, 7, self.h, 4)", "jnp.moveaxis(w, -3, -1)", "self.h"),
        ("(2, 5, self.h, 4)", "(2, 7, self.h, 4)", "jnp.moveaxis(w, -2, -1)", "5"),
        (
            "(2, 5, self.h, 4)",
            "(2, 5, self.h, 4)",
            "jnp.einsum('...hqk,...khd->...qhd', w, k).reshape(2, 5, -1)",
            "self.h * 4",
        ),
        ("(2, 5, self.h, 4)", "(-1, 2, self.h, 4)", "w", "2"),
        ("(2, 5, self.h, 4)", "(2, -1, self.h, 4)", "w", ASKED),
        ("(-1, 4)", "(-1, 4)", "w", ASKED),
    ],
)
def test_weights_of_attention(query: str, key: str, cut: str, expected: str) -> None:
    body = f"q, k = x.reshape({query}), x.reshape({key})\nw = nn.dot_product_attention_weights(q, k)\nx = {cut}"
    assert last(body, given="x") == expected


@pytest.mark.parametrize("axes", ["1, 2", "-3, -1"])
def test_axes_that_an_array_lacks_are_no_fault_of_ours(axes: str) -> None:
    assert last(f"x = jnp.swapaxes(x.reshape(2, 3), {axes})") == ASKED


MLP = """
class Model(nn.Module):
    widths: Sequence[int]
    @nn.compact
    def __call__(self, x):
        for width in self.widths:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(2)(x)
"""
ACT = "    def act(self, obs):\n        return self({})\n"


@pytest.mark.parametrize("given", ["obs", "obs + 1", "jnp.concatenate([obs, obs], -1)"])
def test_what_a_loop_carries_is_what_the_call_shows(given: str) -> None:
    result = sizes_of(MLP + ACT.format(given))
    assert carried(result) == [("x_features", "in_features", "width")]
    assert in_features(result) == ["x_features", "x_features"]


def test_two_methods_that_run_a_loop_with_other_sizes_do_not_say_what_it_carries() -> None:
    text = MLP.replace("__call__", "run").replace("    @nn.compact\n", "")
    text = text.replace("nn.Dense(width)(x)", "self.layers(width)(x)")
    other = "    def one(self, x):\n        return self.run(x)\n"
    other += "    def two(self, y):\n        return self.run(jnp.concatenate([y, y], -1))\n"
    assert carried(sizes_of(text + other)) == []
