"""Names that are bound to a test of what they stood for before: ``fast = fast and ...``."""

import pytest

from tests.rewrite.running import net_alike, printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, fast=False):
        fast = {test}
        if fast:
            x = x * 2
        return nn.Dense(3)(x)
"""


@pytest.mark.parametrize(
    "test",
    [
        "fast and jax.default_backend() == 'gpu'",
        "fast or jax.default_backend() == 'cpu'",
        "x.ndim > 1 and fast",
        "not fast",
        "fast == True",
    ],
)
def test_a_test_of_what_the_name_was_leaves_the_class_explicit(test: str) -> None:
    source = SOURCE.format(test=test)
    assert net_alike(source, "jnp.ones((2, 4))") == {"m.Net": "explicit"}


def test_a_helper_that_binds_its_parameter_so_is_read() -> None:
    source = (
        "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
        "def scale(x, fast=False):\n    fast = fast and jax.default_backend() == 'gpu'\n"
        "    if fast:\n        return x * 2\n    return x\n\n\n"
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return nn.Dense(3)(scale(x, fast=True))\n\n\n"
        "def main():\n    print(Net().init_with_output(jax.random.key(0), jnp.ones((2, 4))))\n"
    )
    assert printed_alike(source) == {"m.Net": "explicit"}
