"""What an operand changes that may not run is not what later sizes are read from."""

import jax.numpy as jnp
import pytest

from tests.rewrite.running import in_auto, same_in_auto

LINEN = "import flax.linen as nn\n\n\nclass Model(nn.Module):\n    flag: bool = True\n\n"
COMPACT = f"{LINEN}    @nn.compact\n    def __call__(self, x):\n        ws = [4, 5, 6]\n"
END = "        return nn.Dense(ws[-1])(x)\n"

CHANGING = {
    "the second of and": f"{COMPACT}        _ = self.flag and ws.pop()\n{END}",
    "the second of or": f"{COMPACT}        _ = self.flag or ws.append(7)\n{END}",
    "the first, and again": f"{COMPACT}        x = nn.Dense(ws.pop() or ws.pop())(x)\n{END}",
    "one side of a conditional": (
        f"{COMPACT}        x = nn.Dense(ws.pop() if self.flag else 3)(x)\n{END}"
    ),
    "a test": f"{COMPACT}        if self.flag and ws.pop():\n            x = x + 1\n{END}",
    "a function of its own": (
        f"{COMPACT}        def take():\n            return ws.pop()\n"
        f"        x = nn.Dense(take() if self.flag else 3)(x)\n{END}"
    ),
}


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("source", CHANGING.values(), ids=CHANGING)
def test_a_list_that_an_operand_may_change_has_both_lengths(source: str, flag: bool) -> None:
    same_in_auto(source, f"Model({flag})", jnp.ones((2, 3)))


def test_setup_asks_for_a_size_behind_such_a_list() -> None:
    source = (
        f"{LINEN}    def setup(self):\n        ws = [4, 5]\n        _ = self.flag and ws.pop()\n"
        "        self.a = nn.Dense(ws[-1])\n        self.b = nn.Dense(2)\n\n"
        "    def __call__(self, x):\n        return self.b(self.a(x))\n"
    )
    assert "self.b = nnx.Linear(b_in_features, 2, rngs=rngs)" in in_auto(source)
