"""What a call refuses: explicit classes raise it of inputs of which their constructors read more than these have."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 2

    @nn.compact
    def __call__(self, x, scale=1.0):
        {guard}
        x = nn.Conv(self.width, (3, 3))(x)
        return nn.Dense(2)(x.reshape(x.shape[0], -1)) * scale


class Around(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Net(name="net")(x)


def main():
    for model in (Net(), Around()):
        for shape in ((), (3,), (2, 4), (2, 4, 4, 3)):
            try:
                print(jax.tree.map(jnp.shape, model.init(jax.random.key(0), jnp.ones(shape))))
            except {errors} as error:
                print(type(error).__name__, error)
"""
)
GUARDS = {
    "a rank": (
        'if x.ndim != 4:\n            raise ValueError(f"expected NHWC, found {x.shape}")',
        "ValueError",
    ),
    "an assertion": ('assert x.ndim == 4, f"{x.ndim} axes"', "AssertionError"),
    "taken apart": ("batch, height, width, _ = x.shape", "ValueError"),
}


@pytest.mark.parametrize(("guard", "errors"), GUARDS.values(), ids=GUARDS)
def test_the_call_says_what_it_refuses(guard: str, errors: str) -> None:
    source = PROGRAM.replace("{guard}", guard).replace("{errors}", errors)
    assert printed_alike(source) == {"m.Net": "explicit", "m.Around": "explicit"}
