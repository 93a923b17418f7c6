"""Modules that scripts and lazy classes build and hand to explicit classes: ``Classifier(Backbone(16))``."""

from __future__ import annotations

import pytest

from tests.rewrite.running import lazy, printed_alike

CLASSES = """\
from functools import partial
from typing import Any, Optional, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.traverse_util import flatten_dict


class Backbone(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(self.width)(x))
        x = nn.Dropout(0.5, deterministic=not train)(x)
        self.sow("intermediates", "seen", x)
        return nn.Dense(self.width)(x)


class Classifier(nn.Module):
    backbone: nn.Module
    classes: int = 3

    @nn.compact
    def __call__(self, x, train=False):
        return nn.Dense(self.classes)(self.backbone(x, train))


class Coder(nn.Module):
    encoder: nn.Module
    decoder: nn.Module

    def encode(self, x):
        return self.encoder(x)

    def __call__(self, x):
        return self.decoder(self.encode(x))


class Residual(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.LayerNorm()(x + self.inner(x))


class Around(nn.Module):
    body: nn.Module

    def setup(self):
        self.first = Residual(self.body)
        self.rest = [Residual(inner=self.body), Residual(Residual(self.body))]

    def __call__(self, x):
        x = self.first(x)
        for one in self.rest:
            x = one(x)
        return self.body(x)


class Chain(nn.Module):
    layers: Sequence[nn.Module]
    last: Optional[nn.Module] = None

    @nn.compact
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        if self.last is not None:
            x = self.last(x)
        return nn.Dense(2)(x)


"""
SHOW = """\


def main():
    key, x = jax.random.key(0), jnp.arange(6.0).reshape(2, 3)
    for model in models():
        made = model.init({"params": key, "dropout": key}, x)
        print({path: one.sum() for path, one in flatten_dict(made).items()}, model.apply(made, x))
        given = {"rngs": {"dropout": key}, "mutable": ["batch_stats", "intermediates"]}
        print(jax.jit(lambda v, x, model=model: model.apply(v, x, **given))(made, x))
        print(jax.grad(lambda v, model=model: sum(map(jnp.sum, jax.tree.leaves(model.apply(v, x)))))(made))
"""
SCRIPTS = {
    "a class of the project": "return [Classifier(Backbone(5)), Classifier(Backbone(), classes=2)]",
    "layers": "return [Coder(nn.Dense(4), decoder=nn.Sequential([nn.Dense(2), nn.relu]))]",
    "one in two fields": "same = Backbone(3)\n    return [Coder(same, same)]",
    "one with a name": "return [Coder(Backbone(3, name='first'), nn.Dense(1))]",
    "one inside of another": "return [Coder(Coder(Backbone(), nn.Dense(2)), Backbone(2))]",
    "one that is handed on": "return [Around(Backbone(3)), Around(nn.Dense(3)), Around(Residual(nn.Dense(3)))]",
    "one inside of another and beside it": "same = nn.Dense(3)\n    return [Coder(Residual(same), same)]",
    "a list of them": "return [Chain([nn.Dense(4), jnp.sin, Backbone()]), Chain((), nn.Dense(3))]",
    "by a dict": "kw = {'encoder': Backbone(), 'decoder': nn.Dense(1)}\n    return [Coder(**kw)]",
    "by a function": (
        "def make(part, cls=Coder):\n        return cls(part, nn.Dense(2))\n\n"
        "    return [make(Backbone()), make(nn.Dense(1))]"
    ),
    "by a copy": "return [Coder(nn.Dense(1), nn.Dense(2)).clone(encoder=Backbone())]",
    "to a lifted class": (
        "Many = nn.vmap(Coder, in_axes=None, axis_size=2, variable_axes={'params': 0, 'batch_stats': 0,"
        " 'intermediates': 0}, split_rngs={'params': True, 'dropout': True})\n"
        "    return [Many(Backbone(), nn.Dense(2)), nn.remat(Coder)(nn.Dense(2), Backbone())]"
    ),
    "from a lazy class": """\
return [Trying(), Trying(twice=True), Holding(Backbone()), Rounds()]


class Trying(nn.Module):  # its methods take what they build by a try, which keeps it lazy
    twice: bool = False

    @nn.compact
    def __call__(self, x):
        part = Backbone(3)
        try:
            model = Coder(part, nn.Dense(2))
        finally:
            y = Classifier(part)(x) if self.twice else part(x)
        return model(x), y


class Holding(nn.Module):
    inner: nn.Module

    def setup(self):
        try:
            self.models = [Coder(self.inner, nn.Dense(3)), Classifier(Classifier(self.inner))]
        finally:
            pass

    def __call__(self, x):
        return [model(x) for model in self.models]


class Inner(nn.Module):
    net: nn.Module

    @nn.compact
    def __call__(self, x):
        return Coder(self.net, nn.Dense(3))(x) + Coder(self.net, self.net)(x)


class Rounds(nn.Module):
    @nn.compact
    def __call__(self, x):
        def body(module, x, _):
            return module(x), None

        try:
            part = Inner(nn.Dense(3))
        finally:
            rounds = nn.scan(body, variable_broadcast="params", split_rngs={"params": False}, length=2)
        return rounds(part, x, None)[0]""",
}


@pytest.mark.parametrize("body", SCRIPTS.values(), ids=SCRIPTS)
def test_explicit_classes_that_only_call_them_take_them(body: str) -> None:
    forms = printed_alike(f"{CLASSES}def models():\n    {body}\n{SHOW}")
    own = ("m.Backbone", "m.Classifier", "m.Coder", "m.Chain", "m.Around", "m.Residual")
    assert {name: forms[name] for name in own} == dict.fromkeys(own, "explicit")


def test_a_field_of_any_type_takes_them_where_calls_show_that_it_is_given_some() -> None:
    source = (
        CLASSES
        + """\
class Free(nn.Module):
    part: Any
    after: Optional[Any] = None

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(2)(self.part(x))
        return x if self.after is None else nn.LayerNorm()(self.after(x))


def models():
    same = Backbone(2)
    return [Free(Backbone()), Free(nn.Dense(3), after=Backbone(5)), Free(jnp.sin, same), Free(same, same)]
"""
    )
    forms = printed_alike(source + SHOW.replace("arange(6.0).reshape(2, 3)", "ones((2, 2))"))
    assert forms["m.Free"] == "explicit"


PARTS = """\
class Part(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)

    def features(self, x):
        return self(x) * 2


class Base(nn.Module):
    part: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.LayerNorm()(self.part.features(x))


"""
METHODS = {
    "the class": "return [Base(Part())]",
    "a subclass": "return [Model(Part())]\n\n\nclass Model(Base):\n    depth: int = 2",
    "what it is handed on to": (
        "return [Outer(Part())]\n\n\nclass Outer(nn.Module):\n    body: nn.Module\n\n    @nn.compact\n"
        "    def __call__(self, x):\n        return Base(self.body)(x)"
    ),
    "an explicit class": (
        "return [Outer()]\n\n\nclass Outer(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return Base(Part())(x)"
    ),
}


@pytest.mark.parametrize("body", METHODS.values(), ids=METHODS)
def test_a_class_of_which_it_calls_a_method_first_is_lazy_where_it_is_handed_in(body: str) -> None:
    head = CLASSES[: CLASSES.index("class Backbone")]
    forms = printed_alike(f"{head}{PARTS}def models():\n    {body}\n{SHOW}")
    assert forms["m.Part"] == ("explicit" if "return [Outer()]" in body else "lazy")


TAKERS = {
    "a function gets it": ("return run(self.part, x)", "a lazy submodule is more than called here"),
    "a submodule gets it": (
        "return Same(self.part)(x)",
        "a lazy submodule is more than called here",
    ),
    "it is called in a function": (
        "return jax.lax.map(lambda one: self.part(one), x)",
        "a lazy submodule is used in a function inside the method",
    ),
    "it is asked for what it has": (
        "return x * self.part.features",
        "a lazy submodule is more than called here",
    ),
}


@pytest.mark.parametrize(("line", "reason"), TAKERS.values(), ids=TAKERS)
def test_a_class_that_does_more_with_it_is_lazy(line: str, reason: str) -> None:
    source = (
        "import flax.linen as nn\nimport jax\n\n\ndef run(part, x):\n    return part(x)\n\n\n"
        "class Running(nn.Module):\n    part: nn.Module\n\n    def __call__(self, x):\n"
        "        return jax.lax.map(lambda one: self.part(one), x)\n\n\n"
        "class Taker(nn.Module):\n    part: nn.Module\n\n    @nn.compact\n    def __call__(self, x):\n"
        f"        {line}\n\n\nmodel = Taker(nn.Dense(3))\n"
    )
    why = "what the field part is given here is not known to be explicit"
    assert lazy(source, "Taker") == f"not proven: m.py:24: {why}, and {reason} (line 21)"


PARTIALS = {
    "a class by its name": ("Value", "explicit"),
    "a partial": ("partial(Value, base_cls=partial(MLP, 4))", "explicit"),
    "a partial under a name": ("partial(Value, base_cls=BASE)", "lazy"),
    "a layer": ("partial(Value, base_cls=partial(nn.Dense, 4))", "explicit"),
}


@pytest.mark.parametrize(("given", "form"), PARTIALS.values(), ids=PARTIALS)
def test_partials_in_partials_are_given_what_explicit_code_builds(given: str, form: str) -> None:
    source = f"""\
from functools import partial
from typing import Type

import flax.linen as nn
import jax
import jax.numpy as jnp


class MLP(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Value(nn.Module):
    base_cls: Type[nn.Module] = MLP

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(self.base_cls()(x))


class Around(nn.Module):
    net_cls: Type[nn.Module]

    @nn.compact
    def __call__(self, x):
        return self.net_cls()(x)


BASE = partial(MLP, 4)


def main():
    print(Around({given}).init_with_output(jax.random.key(0), jnp.ones((2, 3))))
"""
    forms = printed_alike(source)
    assert (forms["m.Value"], forms["m.Around"]) == (form, form)


ITEMS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
from typing import Sequence


class Gated(nn.Module):
    units: int
    layer: nn.Module | None = None

    @nn.compact
    def __call__(self, x):
        x = (self.layer if self.layer is not None else nn.Dense(2 * self.units))(x)
        return x[:, : self.units] * nn.sigmoid(x[:, self.units :])


class Features(nn.Module):
    units: int
    shared: Sequence[nn.Module] = ()

    @nn.compact
    def __call__(self, x):
        for i, layer in enumerate(self.shared):
            x = Gated(self.units, layer)(x)
        return Gated(self.units)(x)


class Net(nn.Module):
    def setup(self):
        self.shared = [nn.Dense(6)]
        self.first = Features(3, self.shared)
        self.second = Features(3, self.shared)

    def __call__(self, x):
        return self.first(x) + self.second(x)


def main():
    x = jnp.ones((2, 4))
    variables = Net().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
    print(jax.jit(Net().apply)(variables, x))
"""


def test_a_class_that_gives_items_of_a_field_to_lazy_submodules_is_lazy() -> None:
    assert printed_alike(ITEMS)["m.Features"] == "lazy"
