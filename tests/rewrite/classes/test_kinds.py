"""Code that asks what kind of object a submodule is: NNX's layers are of other classes, with other attributes."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp

NORMS = (nn.LayerNorm, nn.RMSNorm)
RATES = {{"Dense": 2.0, nn.Dense: 3.0}}


def is_norm(layer):
    return isinstance(layer, (nn.LayerNorm, nn.RMSNorm))


def has_width(layer):
    return hasattr(layer, "features")


def kind_of(layer):
    return type(layer).__name__


def run(layer, x):
    return layer(x)


def weight(layers):
    return sum(2.0 if hasattr(layer, "features") else 1.0 for layer in layers)


def last_weight(layers):
    *_, last = layers
    return 2.0 if type(last) is nn.Dropout else 1.0


class Own(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Block(nn.Module):
    def setup(self):
        self.inner = nn.Dense(4)

    def __call__(self, x):
        return self.inner(x)


class Wrap(nn.Module):
    inner: nn.Module

    def __call__(self, x):
        return self.inner(x) * ({wrap})


class Net(nn.Module):
    def setup(self):
        self.block = Block()
        self.wrap = Wrap(nn.Dense(3))
        self.proj = nn.Dense(4)
        self.layers = [nn.Dense(4), nn.LayerNorm(), Own(), nn.Dropout(0.0, deterministic=True)]

    def asks(self, layer):
        return {asks}

    def __call__(self, x):
        y = self.proj(self.wrap(x) + self.block(x)[:, :3])
        for layer in self.layers:
            y = layer(y) * ({loop})
        return y * ({own})


def main():
    x = jnp.arange(6.0).reshape(2, 3)
    variables = Net().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables), Net().apply(variables, x))
"""
)


def form(own: str = "1", loop: str = "1", asks: str = "1", wrap: str = "1", of: str = "Net") -> str:
    """The form of a class in a program that prints the same as before."""
    return printed_alike(PROGRAM.format(own=own, loop=loop, asks=asks, wrap=wrap))[f"m.{of}"]


@pytest.mark.parametrize(
    "own",
    [
        "2 if type(self.proj) is nn.Dense else 1",
        "2 if type(self.proj) == nn.Dense else 1",
        "2 if type(self.proj) in (nn.Dense, nn.Conv) else 1",
        "2 if type(self.proj).__name__ == 'Dense' else 1",
        "2 if self.proj.__class__.__name__ == 'Dense' else 1",
        "RATES[type(self.proj)]",
        "RATES[kind_of(self.proj)]",
        "2 if hasattr(self.proj, 'features') else 1",
        "getattr(self.proj, 'features', 1)",
        "2 if 'features' in vars(self.proj) else 1",
        "2 if 'features' in dir(self.proj) else 1",
        "2 if has_width(self.proj) else 1",
        "2 if has_width(layer=self.proj) else 1",
        "2 if isinstance(self.proj, NORMS + (nn.Dense,)) else 1",
        "weight(self.layers)",
        "last_weight(self.layers)",
        "2 if type(self.block.inner) is nn.Dense else 1",
        "RATES[kind_of(self.block.inner)]",
    ],
)
def test_a_class_that_asks_it_of_an_attribute_is_lazy(own: str) -> None:
    assert form(own=own) == "lazy"


@pytest.mark.parametrize(
    "loop",
    [
        "2 if isinstance(layer, NORMS) else 1",
        "2 if is_norm(layer) else 1",
        "2 if type(layer) is Own else 1",
        "getattr(layer, 'width', 1)",
        "2 if layer.__class__ is nn.LayerNorm else 1",
    ],
)
def test_a_class_that_asks_it_of_one_of_several_is_lazy(loop: str) -> None:
    assert form(loop=loop) == "lazy"


@pytest.mark.parametrize("asks", ["type(layer).__name__ == 'Dense'", "hasattr(layer, 'features')"])
def test_a_class_whose_method_is_asked_is_lazy(asks: str) -> None:
    assert form(loop="2 if self.asks(layer) else 1", asks=asks) == "lazy"


@pytest.mark.parametrize(
    "loop",
    [
        "2 if isinstance(layer, nn.Dropout) else 1",
        "2 if isinstance(layer, (nn.Dropout, Own)) else 1",
        "2 if isinstance(layer, nn.Dropout | Own) else 1",
        "2 if isinstance(layer, Own) else 1",
        "2 if isinstance(layer, nn.Module) else 1",
        "1 if isinstance(layer, int) else 2",
        "2 if layer is self.layers[0] else 1",
        "2 if callable(layer) else 1",
        "len(self.layers)",
    ],
)
def test_classes_that_it_names_itself_are_asked_of_nnxs(loop: str) -> None:
    assert form(loop=loop) == "explicit"


def test_a_method_may_ask_for_classes_by_their_names() -> None:
    loop = "2 if self.asks(layer) else 1"
    assert form(loop=loop, asks="isinstance(layer, nn.Dropout)") == "explicit"


def test_a_function_that_only_calls_it_asks_nothing() -> None:
    assert form(loop="run(layer, y)") == "explicit"


@pytest.mark.parametrize(
    "wrap", ["2 if type(self.inner) is nn.Dense else 1", "2 if has_width(self.inner) else 1"]
)
def test_a_class_that_asks_it_of_a_field_is_lazy(wrap: str) -> None:
    assert form(wrap=wrap, of="Wrap") == "lazy"


def test_a_class_that_calls_what_a_field_holds_is_explicit() -> None:
    assert form(of="Wrap") == "explicit"


AROUND = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 4

    def setup(self):
        self.proj = nn.Dense(self.width)

    def __call__(self, x):
        return self.proj(x)


def main():
    x = jnp.ones((2, 3))
    net = Net()
    variables = net.init(jax.random.key(0), x)
    proj = net.bind(variables).proj
    print({}, proj(x))
"""
)


@pytest.mark.parametrize(
    "asks",
    [
        "isinstance(proj, nn.Dense)",
        "type(proj).__name__",
        "hasattr(proj, 'features')",
        "isinstance(net.bind(variables).proj, nn.Dense)",
    ],
)
def test_a_class_is_lazy_where_code_around_asks_it_of_its_layers(asks: str) -> None:
    assert printed_alike(AROUND.format(asks))["m.Net"] == "lazy"


def test_a_class_is_explicit_where_code_around_calls_its_layers() -> None:
    assert printed_alike(AROUND.format("jnp.ones(())"))["m.Net"] == "explicit"
