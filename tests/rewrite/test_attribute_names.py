"""Parameters and submodules that are called like something else of the class, which Linen keeps apart."""

from __future__ import annotations

import pytest

from tests.rewrite.running import in_auto, lazy, net_alike

HEAD = """\
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp

normal = nn.initializers.normal()


class Scale(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x * self.param("scale", normal, (1, x.shape[-1]))


"""
X = "jnp.arange(12.0).reshape(3, 4) / 7"

FIELD = """\
class Net(nn.Module):
    scale: bool = True
    head: int = 3

    @nn.compact
    def __call__(self, x):
        if self.scale:
            x = x * self.param("scale", normal, (1, x.shape[-1]))
        return nn.Dense(self.head, name="head")(x)
"""
CLASS_ATTRIBUTE = """\
class Net(nn.Module):
    gain = 2

    @nn.compact
    def __call__(self, x):
        return x * self.param("gain", normal, (1, x.shape[-1])) * self.gain
"""
METHOD = """\
class Net(nn.Module):
    def gate(self, x):
        return 2 * x

    @nn.compact
    def __call__(self, x):
        return nn.Dense(4, name="gate")(self.gate(x))
"""
OF_NNX = """\
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3, name="train")(x)
"""
IN_SETUP = """\
class Net(nn.Module):
    def setup(self):
        self.rate = 0.5

    @nn.compact
    def __call__(self, x):
        return x * self.param("rate", normal, (1, x.shape[-1])) * self.rate
"""
FIELD_OF_HEIR = """\
class Net(Scale):
    scale: float = 2.0

    @nn.compact
    def __call__(self, x):
        return super().__call__(x) * self.scale
"""
PROPERTY_OF_HEIR = """\
class Net(Scale):
    @property
    def scale(self):
        return 7.0

    @nn.compact
    def __call__(self, x):
        return super().__call__(x) * self.scale
"""
DECLARED = """\
from dataclasses import field


class Net(nn.Module):
    w: jax.Array = field(init=False)

    def setup(self):
        self.w = self.param("w", normal, (1, 4))

    def __call__(self, x):
        return x * self.w
"""
SOWN = """\
class Net(nn.Module):
    loss = 3.0

    @nn.compact
    def __call__(self, x):
        y = nn.Dense(3)(x)
        self.sow("losses", "loss", y.sum())
        return y * self.loss
"""
STACKED = """\
class Layer(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x, _):
        return nn.Dense(self.width, name="width")(x), None


class Net(nn.Module):
    layers: int = 2

    @nn.compact
    def __call__(self, x):
        stack = nn.scan(
            Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.layers
        )
        return stack(name="layers")(x, None)[0]
"""


@pytest.mark.parametrize(
    "source",
    [
        FIELD,
        CLASS_ATTRIBUTE,
        METHOD,
        OF_NNX,
        IN_SETUP,
        FIELD_OF_HEIR,
        PROPERTY_OF_HEIR,
        DECLARED,
        SOWN,
        STACKED,
    ],
)
def test_both_are_kept(source: str) -> None:
    assert {*net_alike(HEAD + source, X).values()} == {"explicit"}


def test_the_attribute_has_an_underscore_and_linens_name_stands_above_the_class() -> None:
    found = in_auto(HEAD + FIELD)
    assert '@nnm.called_in_linen(head_="head", scale_="scale")\nclass Net(nnx.Module):' in found
    assert "self.head_ = nnx.Linear(in_features, self.head, rngs=rngs)" in found
    assert "x = x * self.scale_[...]" in found


@pytest.mark.parametrize(
    "source",
    [
        FIELD.replace("if self.scale:", "if self.scale or self.has_variable('params', 'scale'):"),
        FIELD.replace("class Net", "scale_ = 3\n\n\nclass Net"),
        FIELD.replace('name="head"', 'name="he" + "ad"'),
        FIELD.replace('name="head"', 'name="head" if self.scale else "other"'),
        FIELD.replace('name="head"', 'name=f"he{kind}"').replace("x):\n", "x, kind='ad'):\n"),
        FIELD.replace('name="head"', 'name="h%s" % "ead"'),
        FIELD.replace('name="head"', 'name="{}d".format("hea")'),
        FIELD.replace('self.param("scale", normal', 'self.variable("s", "scale", jnp.ones').replace(
            "[-1]))", "[-1])).value"
        ),
        """\
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)


class Heir(Net):
    Dense_0: int = 3
""",
        """\
class Net(nn.Module):
    scale: int = 2

    def setup(self):
        self.held = self.param("scale", normal, (4,))

    def __call__(self, x):
        return x * self.held * self.scale
""",
    ],
)
def test_other_names_that_meet_stay_lazy(source: str) -> None:
    assert "as well, and an NNX module has one attribute of a name" in lazy(HEAD + source, "Net")


@pytest.mark.parametrize(
    "name",
    ['f"layer_{i}"', '"layer_" + str(i)', '"layer_%d" % i', '"layer_{}".format(i)'],
)
def test_computed_names_that_no_attribute_has_are_explicit(name: str) -> None:
    source = f"""\
class Net(nn.Module):
    num_layers: int = 2

    @nn.compact
    def __call__(self, x):
        for i in range(self.num_layers):
            x = nn.Dense(4, name={name})(x)
        return x
"""
    assert net_alike(HEAD + source, X)["m.Net"] == "explicit"
