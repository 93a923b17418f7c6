"""Names of initializers that another file gives: ``default_init = nn.initializers.xavier_uniform``."""

from __future__ import annotations

import pytest

from tests.rewrite.running import files_printed_alike

MAIN = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
from START import default_init


class Explicit(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2, kernel_init=default_init())(x)


class Lazy(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.jit(nn.Dense)(3, kernel_init=default_init())(x)


def main():
    x = jnp.ones((1, 4))
    for net in (Explicit(), Lazy()):
        print(net.apply(net.init(jax.random.key(0), x), x))
"""
START = "import flax.linen as nn\n\ndefault_init = nn.initializers.xavier_uniform\n"


@pytest.mark.parametrize("start", ["start", "again"])
def test_a_class_that_stays_lazy_and_an_explicit_one_share_it(start: str) -> None:
    files = {
        "start.py": START,
        "again.py": "from start import default_init\n",
        "m.py": MAIN.replace("START", start),
    }
    assert files_printed_alike(files) == {"m.Explicit": "explicit", "m.Lazy": "lazy"}
