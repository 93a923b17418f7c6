"""Fields of any type (``block: Any``) that are given a class, by a table, a local, unpacked or from a constructor."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
from typing import Any
import jax
import jax.numpy as jnp


class Narrow(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(self.width)(x)


class Wide(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(nn.relu(nn.Dense(2 * self.width)(x)))


class Net(nn.Module):
    {field}
    width: int = 4

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.width)(x)
        {body}
        return nn.Dense(2)(x)


{around}


def main():
    x = jnp.ones((2, 3))
    for model in models():
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), model.apply(variables, x))
"""
)
TABLE = (
    'KINDS = {"a": Narrow, "b": Wide}\n\n\n'
    "def models():\n    return [Net(block=KINDS[name]) for name in sorted(KINDS)]"
)
AROUND = {
    "table": TABLE,
    "local": (
        "def models(name='a'):\n    if name == 'a':\n        block = Narrow\n    else:\n"
        "        block = Wide\n    return [Net(block)]"
    ),
    "default": (
        "def make(block=Narrow):\n    return Net(block=block)\n\n\n"
        "def models():\n    return [make(), make(Wide)]"
    ),
    "unpacked": "KEYS = dict(block=Wide, width=6)\n\n\ndef models():\n    return [Net(**KEYS)]",
    "constructor": (
        "class Trainer:\n    def __init__(self, block):\n        self.model = Net(block=block)\n\n\n"
        "def models():\n    return [Trainer(Wide).model]"
    ),
}
TWICE = "for _ in range(2):\n            x = self.block(self.width)(x)"
HANDED_ON = (
    "class Stage(nn.Module):\n    layer: Any\n    other: Any = None\n\n"
    "    @nn.compact\n    def __call__(self, x):\n        {body}\n\n\n" + TABLE
)
# Bodies of Net, and whether a class is explicit that does this with a field that may be given any class.
BODIES = {
    "a local": ("layer = self.block(self.width)\n        x = layer(x)", "explicit"),
    "its name": ('x = self.block(self.width, name="own")(x)', "explicit"),
    "under a test": (
        "if self.block is not None:\n            x = self.block(self.width)(x)",
        "explicit",
    ),
    "or None": (
        "one = self.block(4) if self.block is not None else None\n        x = x if one is None else one(x)",
        "explicit",
    ),
    "another name of the field": ("make = self.block\n        x = make(self.width)(x)", "lazy"),
    "a list": ("for one in [self.block(4), self.block(4)]:\n            x = one(x)", "lazy"),
    "lifted": ("x = nn.remat(self.block)(self.width)(x)", "lazy"),
    "compared": ("x = self.block(self.width)(x) if self.block is not Wide else x", "lazy"),
}
# Bodies of another class that Net hands its field on to.
ONWARD = {
    "built there": ("return self.layer(4)(x)", "explicit"),
    "handed on with another": (
        "return self.layer(4)(x if self.other is None else self.other()(x))",
        "explicit",
    ),
    "compared there": ("return x if self.layer is Wide else self.layer(4)(x)", "lazy"),
}


FORMS = {  # lazy where a dict is unpacked: it may give modules that are built
    "table": "explicit",
    "local": "explicit",
    "default": "explicit",
    "unpacked": "lazy",
    "constructor": "explicit",
}


@pytest.mark.parametrize("around", AROUND)
def test_what_the_field_builds_is_called_where_it_is_built(around: str) -> None:
    program = PROGRAM.format(field="block: Any", body=TWICE, around=AROUND[around])
    assert printed_alike(program)["m.Net"] == FORMS[around]


@pytest.mark.parametrize(("body", "form"), BODIES.values(), ids=BODIES)
def test_what_the_field_builds_goes_elsewhere_first(body: str, form: str) -> None:
    program = PROGRAM.format(field="block: Any", body=body, around=TABLE)
    assert printed_alike(program)["m.Net"] == form


@pytest.mark.parametrize(("body", "form"), ONWARD.values(), ids=ONWARD)
def test_a_field_is_handed_on_to_another_class(body: str, form: str) -> None:
    """Net itself only holds what the other builds, lazy or not."""
    handing = "x = Stage(layer=self.block, other=nn.LayerNorm)(x)\n        x = Stage(self.block)(x)"
    around = HANDED_ON.replace("{body}", body)
    found = printed_alike(PROGRAM.format(field="block: Any", body=handing, around=around))
    assert (found["m.Net"], found["m.Stage"]) == ("explicit", form)


def test_the_classes_that_it_builds_stay_explicit() -> None:
    found = printed_alike(PROGRAM.format(field="block: Any", body=TWICE, around=TABLE))
    assert (found["m.Narrow"], found["m.Wide"]) == ("explicit", "explicit")


def test_a_field_that_holds_a_function_is_no_builder() -> None:
    around = "def models():\n    return [Net(nn.relu), Net(jnp.tanh)]"
    program = PROGRAM.format(field="block: Any", body="x = self.block(x)", around=around)
    assert printed_alike(program)["m.Net"] == "explicit"


READ = (
    LINEN
    + """\
from typing import Any
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int
    layer: Any = nn.Dense

    @nn.compact
    def __call__(self, x):
        return nn.relu(self.layer(self.width)(x))


class Split(nn.Module):
    block: Any = Block

    @nn.compact
    def __call__(self, x):
        block = self.block(4)
        {body}


def main():
    x = jnp.ones((2, 3))
    variables = Split().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables), Split().apply(variables, x))
"""
)


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("return block.layer(2)(block(x))", "lazy"),
        ("layer = block.layer\n        return layer(2)(block(x))", "lazy"),
        ("return nn.Dense(2)(block(x))", "explicit"),
    ],
)
def test_a_class_whose_field_of_a_class_others_build_with_is_lazy(body: str, form: str) -> None:
    assert printed_alike(READ.replace("{body}", body))["m.Block"] == form
