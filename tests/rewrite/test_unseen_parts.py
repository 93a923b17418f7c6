"""What no call in sight surely reaches: Linen's init may leave it out, so ``auto`` keeps the class lazy."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

MAIN = """

def main():
    import jax
    import jax.numpy as jnp

    for flag in (True, False):
        variables = Net(flag).init(jax.random.key(0), jnp.ones((2, 4)))
        print(jax.tree.map(jnp.shape, variables))
"""


def net(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    head = "class Net(nn.Module):\n    flag: bool = True\n\n    @nn.compact\n"
    return f"{LINEN}{head}    def __call__(self, x):\n{lines}        return x\n"


UNSEEN = {
    "one of two, by a flag": "layers = (nn.Dense(4), nn.LayerNorm())\nx = layers[self.flag](x)",
    "one of a dict, by a key": "layers = {True: nn.Dense(4), False: nn.LayerNorm()}\n"
    "x = layers[self.flag](x)",
}


@pytest.mark.parametrize("body", UNSEEN.values(), ids=UNSEEN)
def test_a_part_that_no_call_surely_reaches_is_left_to_its_first(body: str) -> None:
    assert printed_alike(net(body) + MAIN) == {"m.Net": "explicit"}


@pytest.mark.parametrize(
    "body",
    [
        "layers = (nn.Dense(4), nn.LayerNorm())\nx = layers[1](layers[0](x))",
        "for layer in (nn.Dense(4), nn.LayerNorm()):\n    x = layer(x)",
        "x = nn.Dense(4)(x) if self.flag else nn.LayerNorm()(x)",
        (
            "one, two = nn.Dense(4), nn.LayerNorm()\n"
            "for layer, scale in zip([one, two], (1.0,)):\n    x = layer(x) * scale"
        ),
    ],
)
def test_parts_that_are_all_called_or_left_to_their_first_call_are_explicit(body: str) -> None:
    assert printed_alike(net(body) + MAIN) == {"m.Net": "explicit"}
