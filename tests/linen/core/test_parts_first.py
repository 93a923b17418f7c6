"""`init` with a function from outside that calls a part: its size may be that of the class's own input."""

import jax
import jax.numpy as jnp
import pytest

from tests.rewrite.running import in_auto, module_of, printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 4

    def setup(self):
        self.e = nn.Dense(self.width)
        self.norm = nn.LayerNorm()
        self.d = nn.Dense(3)

    def __call__(self, x):
        return self.d(self.norm(self.e(x)))


class Two(nn.Module):
    def setup(self):
        self.left = nn.Dense(4)
        self.right = nn.MultiHeadDotProductAttention(num_heads=2)

    def __call__(self, x, y):
        return self.left(x).sum() + self.right(y)


def encode(net, x):
    return net.e(x)


def swapped(net, y, x):
    return net.right(y).sum() + net.left(x)


def shown(variables):
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    print([(jax.tree_util.keystr(path), one.shape, one.sum()) for path, one in leaves])


def main():
    x, y, key = jnp.ones((2, 5)), jnp.ones((2, 3, 6)), jax.random.key(0)
    for net in (Net(), Net(width=7)):
        shown(net.init(key, x, method=encode))
        shown(jax.jit(lambda key: net.init(key, x, method=encode))(key))
        shown(nn.init(lambda net, x: net.d(net.norm(net.e(x))), net)(key, x))
    shown(Two().init(key, x, y, method=lambda net, x, y: net.right(y)))
    shown(Two().init(key, x, y, method=lambda net, x, y: net.left(x)))
    shown(Two().init(key, y, x, method=swapped))
"""


def test_the_parts_that_are_called_are_made():
    forms = printed_alike(SOURCE)
    assert {*forms.values()} == {"explicit"}, forms


def test_a_part_of_other_sizes_raises_and_says_why():
    """Its size is in the text of the explicit class; Linen's would have that of the input."""
    with module_of("parts", in_auto(SOURCE)) as module:
        net = module.lazy(module.Net)()
        with pytest.raises(TypeError, match="contracting dimensions") as found:
            net.init(jax.random.key(0), jnp.ones((2, 5)), method=lambda net, x: net.d(x))
        assert "Net is explicit: d has the sizes" in found.value.__notes__[0]
