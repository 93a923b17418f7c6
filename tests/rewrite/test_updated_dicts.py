"""Dicts that a method updates and takes entries from: collected outputs, options and sizes are followed as entries are."""

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


def fill(found, x):
    found.update(x=jnp.concatenate([x, x], -1))


class Head(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return {{f"head{{self.width}}": nn.Dense(self.width)(x)}}


class Net(nn.Module):
    wide: bool = True

    @nn.compact
    def __call__(self, x):
        {body}


"""
EXPLICIT = {
    "outputs": (
        "found = {}",
        "for width in (2, 3):",
        "    found.update(Head(width)(x))",
        "found.update(last=nn.Dense(1)(found['head2']))",
        "return found",
    ),
    "options under a field": (
        "options = dict(features=3)",
        "if self.wide:",
        "    options.update(features=5, use_bias=False)",
        "return nn.Dense(**options)(nn.Dense(**options)(x))",
    ),
    "a size that another name changes": (
        "sizes = {'w': 3}",
        "other = sizes",
        "other.update(w=4)",
        "return nn.Dense(2)(nn.Dense(sizes['w'])(x))",
    ),
    "features that grow": (
        "found = {'x': x}",
        "found.update({'x': jnp.concatenate([x, x], -1)})",
        "return nn.Dense(2)(found['x'])",
    ),
    "a dict that a function fills": (
        "found = {'x': x}",
        "fill(found, x)",
        "return nn.Dense(2)(found['x'])",
    ),
    "what a generator gives": (
        "found = {'x': x}",
        "found.update((name, one[..., :2]) for name, one in found.copy().items())",
        "return nn.Dense(2)(found['x'])",
    ),
    "an entry that is taken": (
        "options = {'features': 3, 'more': 7}",
        "other = options",
        "more = other.pop('more')",
        "less = options.pop('less', 1)",
        "return nn.Dense(**options)(nn.Dense(more)(x)) + less",
    ),
    "a set": (
        "widths = {3}",
        "widths.update([4, 5])",
        "for width in sorted(widths):",
        "    x = nn.Dense(width)(x)",
        "return x",
    ),
}
LAZY = {
    "layers": (
        "layers = {'a': nn.Dense(3), 'b': nn.Dense(4)}",
        "layers.update(a=nn.Dense(5))",
        "for layer in layers.values():",
        "    x = layer(x)",
        "return x",
    ),
    "layers that are taken": (
        "layers = {'a': nn.Dense(3), 'b': nn.Dense(4)}",
        "last = layers.pop('b')",
        "for layer in layers.values():",
        "    x = layer(x)",
        "return last(x)",
    ),
    "an entry that is taken inside an expression": (
        "options = {'features': 3, 'more': 7}",
        "x = nn.Dense(options.pop('more'))(x)",
        "return nn.Dense(**options)(x)",
    ),
    "an entry whose name is computed": (
        "widths = {'a': 3, 'b': 4}",
        "return nn.Dense(widths.pop('a' if self.wide else 'b'))(x)",
    ),
    "a name": (
        "options = {'features': 3}",
        "options.update(name='one')",
        "return nn.Dense(**options)(x)",
    ),
}


def form(lines: tuple[str, ...]) -> str:
    source = SOURCE.format(body="\n        ".join(lines))
    return net_alike(source, "jnp.linspace(-1, 1, 10).reshape(2, 5)")["m.Net"]


@pytest.mark.parametrize("lines", EXPLICIT.values(), ids=EXPLICIT)
def test_what_an_updated_dict_holds_is_followed(lines: tuple[str, ...]) -> None:
    assert form(lines) == "explicit"


@pytest.mark.parametrize("lines", LAZY.values(), ids=LAZY)
def test_updated_layers_and_names_are_lazy(lines: tuple[str, ...]) -> None:
    assert form(lines) == "lazy"
