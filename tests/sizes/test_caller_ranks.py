"""How many axes an argument has where every class of the project that calls it shows that."""

from __future__ import annotations

import pytest

from tests.sizes.inference import arguments, compact, in_features, sites, sizes_of

BLOCK = """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = jnp.swapaxes(nn.LayerNorm()(x), 1, 2)
        y = nn.Dense(x.shape[1])(nn.relu(nn.Dense(5)(y)))
        return x + jnp.swapaxes(y, 1, 2)
"""


def model(body: str, more: str = "") -> str:
    return compact(body, "n: int = 2", before=BLOCK) + more


SHOWN = [
    "b, t, c = x.shape\nreturn Block()(x)",
    "x = nn.Conv(6, (3, 3))(x)\nreturn Block()(x.reshape(x.shape[0], -1, 6))",
    "b, t, c = x.shape\nfor _ in range(self.n):\n    x = Block()(x)\nreturn x",
    "b, t, c = x.shape\nreturn Block()(x) + Block()(nn.Dense(4)(x))",
]
NOT_SHOWN = [
    "return Block()(x)",
    "b, t, c = x.shape\nreturn Block()(x) + Block()(x[None])",
    "b, t, c = x.shape\nreturn nn.remat(Block)()(x)",
    "b, t, c = x.shape\nblock = Block()\nreturn self.run(block, x)",
]


@pytest.mark.parametrize("body", SHOWN)
def test_axes_are_counted_where_every_call_shows_how_many_there_are(body: str) -> None:
    result = sizes_of(model(body), "Block")
    assert arguments(result) == ["x_shape"]
    assert in_features(result)[-2:] == ["5", "x_shape[-2]"]


@pytest.mark.parametrize("body", NOT_SHOWN)
def test_axes_are_not_counted_where_a_call_does_not(body: str) -> None:
    assert "Dense_1_in_features" in arguments(sizes_of(model(body), "Block"))


@pytest.mark.parametrize(
    "more",
    [
        "def run(x):\n    return Block()(x)\n",
        "BLOCKS = [Block]\n",
        "class Heir(Block):\n    pass\n",
    ],
)
def test_code_outside_of_the_classes_may_call_it_otherwise(more: str) -> None:
    assert "Dense_1_in_features" in arguments(sizes_of(model(SHOWN[0], more), "Block"))


def test_a_chain_of_classes_hands_ranks_on() -> None:
    middle = """
class Middle(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Block()(x)
"""
    source = model("b, t, c = x.shape\nreturn Middle()(x)", middle)
    assert arguments(sizes_of(source, "Block")) == ["x_shape"]
    assert sites(sizes_of(source, "Middle")) == {"Block()": {"x_shape": "x_shape"}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b, t, c = x.shape\nreturn Block()(x)", "x_shape"),
        (
            "b, t, c = x.shape\nreturn Block()(x[:, 1:])",
            "(x_shape[-3], x_shape[-2] - 1, x_shape[-1])",
        ),
        (
            "x = nn.Conv(6, (1, 1))(x)\nreturn Block()(x.reshape(x.shape[0], -1, 6))",
            "(None, x_shape[-3] * x_shape[-2], 6)",  # nobody reads the batch axis
        ),
    ],
)
def test_a_caller_passes_the_axes_that_are_read(body: str, expected: str) -> None:
    assert sites(sizes_of(model(body)))["Block()"] == {"x_shape": expected}
