"""Fields that build modules of classes that nobody knows here: explicit classes hold these lazily."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
from functools import partial
from typing import Any, Callable, Optional, Type
import jax
import jax.numpy as jnp


class Narrow(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(self.width)(x))
        return nn.Dropout(0.5, deterministic=not train)(x)


class Wide(nn.Module):
    width: int = 2

    def setup(self):
        self.layers = [nn.Dense(2 * self.width), nn.Dense(self.width)]

    def __call__(self, x, train=False):
        for layer in self.layers:
            x = layer(x)
        return x

    def features(self, x):
        return self.layers[0](x)


class Taking(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(2)(self.inner(x, train))


class Net(nn.Module):
    {field}
    width: int = 3

    {body}


class Around(nn.Module):
    block: Any

    @nn.compact
    def __call__(self, x, train=False):
        return nn.LayerNorm()(Net(self.block)(x, train))


def some(count, kinds):
    return list(kinds)[:count]


def function(width=3, name=None):
    return Wide(width, name=name)


def main():
    x = jax.random.normal(jax.random.key(1), (2, 3))
    keys = dict(zip(("params", "dropout"), jax.random.split(jax.random.key(0))))
    for block in some(9, {kinds}):
        model = Around(block)
        variables = model.init(keys, x)
        print(jax.tree.map(lambda one: (one.shape, float(one.sum())), variables))
        y, changed = model.apply(variables, x, True, rngs=keys, mutable=["batch_stats"])
        print(y, jax.tree.map(jnp.sum, changed))
"""
)
KINDS = "[Narrow, partial(Wide), function]"
FIELDS = {
    "any": "block: Any",
    "a callable": "block: Callable[..., nn.Module]",
    "a type": "block: Type[nn.Module]",
}
TWICE = """\
@nn.compact
    def __call__(self, x, train=False):
        x = self.block(self.width)(x, train)
        return nn.Dense(2)(self.block(name="last")(x, train))
"""
SHARED = """\
@nn.compact
    def __call__(self, x, train=False):
        block = self.block(3)
        for _ in range(2):
            x = block(x, train)
        return nn.Dense(2)(x)
"""
SETUP = """\
def setup(self):
        self.first = self.block(self.width)
        self.others = [self.block(self.width) for _ in range(2)]
        self.out = nn.Dense(2)

    def __call__(self, x, train=False):
        x = self.first(x, train)
        for one in self.others:
            x = one(x, train)
        return self.out(x)
"""
BODIES = {"compact": TWICE, "called twice": SHARED, "setup": SETUP}
LAZY = {
    "a condition on the call": """\
@nn.compact
    def __call__(self, x, train=False):
        x = self.block(3)(x, False)
        if not train:
            x = self.block(3)(x, train)
        return nn.Dense(2)(x)
""",
    "a method of it": """\
def setup(self):
        self.first = self.block(self.width)

    def __call__(self, x, train=False):
        return self.first.features(x)
""",
    "a comparison": """\
@nn.compact
    def __call__(self, x, train=False):
        x = self.block(3)(x, train)
        return nn.Dense(2)(x) if self.block is Wide else x
""",
    "a table": """\
@nn.compact
    def __call__(self, x, train=False):
        return self.block({Wide: 3}.get(self.block, 2))(x, train)
""",
    "its variables": """\
def setup(self):
        self.first = self.block(self.width)

    def __call__(self, x, train=False):
        return self.first(x, train) * len(self.first.variables["params"])
""",
    "another module gets it": """\
@nn.compact
    def __call__(self, x, train=False):
        first = self.block(self.width)
        return Taking(first)(x, train)
""",
    "a lift": """\
@nn.compact
    def __call__(self, x, train=False):
        return nn.remat(self.block, static_argnums=(2,))(3)(x, train)
""",
}


HELD = """\
class Held(nn.Module):
    width: int = 3
    inner: Any = None

    def __call__(self, x, train):
        return self.inner(x)


"""


def forms(field: str, body: str, kinds: str = KINDS) -> dict[str, str]:
    return printed_alike(PROGRAM.format(field=field, body=body, kinds=kinds))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_the_field_builds_is_held_lazily(body: str) -> None:
    assert forms("block: Any", body)["m.Net"] == "explicit"


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_the_field_says_no_more_than_that_it_builds(field: str) -> None:
    assert forms(field, TWICE)["m.Net"] == "explicit"


@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_what_is_more_than_called_keeps_the_class_lazy(body: str) -> None:
    assert forms("block: Any", body, "[Wide, partial(Wide)]")["m.Net"] == "lazy"


ONCE = """\
@nn.compact
    def __call__(self, x, train=False):
        x = nn.Dense(3)(self.block(3)(x, train))
        return Wide(2)(x)
"""
ONCE_IN_SETUP = """\
def setup(self):
        self.body = self.block(self.width)

    def __call__(self, x, train=False):
        return self.body(x, train)
"""


@pytest.mark.parametrize("body", [ONCE, ONCE_IN_SETUP], ids=["compact", "setup"])
def test_what_a_partial_names_keeps_that_name(body: str) -> None:
    kinds = '[partial(Wide, name="own"), Wide]'
    assert forms("block: Any", body, kinds)["m.Net"] == "explicit"


def test_a_partial_has_a_module_of_its_own() -> None:
    source = PROGRAM.format(
        field="block: Any", body=TWICE, kinds="[partial(Held, inner=nn.Dense(3))]"
    )
    assert printed_alike(source.replace("def some", f"{HELD}def some"))["m.Net"] == "explicit"


def test_a_field_that_gives_functions_is_called_as_in_linen() -> None:
    body = TWICE.replace("(x, train)", "(x)").replace('name="last"', "1")
    kinds = "[lambda width: nn.relu, lambda width: jnp.tanh]"
    assert forms("block: Any", body, kinds)["m.Net"] == "explicit"
