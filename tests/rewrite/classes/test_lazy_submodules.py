"""Explicit classes that hold submodules of lazy classes, and what makes them lazy, too."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import printed_alike

PROGRAM = """\
from typing import Any, Callable
import functools

import jax
import jax.numpy as jnp
from flax import linen as nn


class Leaf(nn.Module):
    features: int = 4
    act: Any = None
    norm: Any = None

    def setup(self):
        self.out = nn.Dense(self.features)

    @nn.compact
    def inner(self, x):
        x = x if self.norm is None else self.norm()(x)
        return (lambda y: nn.Dense(self.features, name="inside")(y))(x)  # which keeps it lazy

    def __call__(self, x, train=False):
        x = self.out(self.inner(x))
        return x if self.act is None else self.act(x)


{more}


class Net(nn.Module):
    width: int = 4

    {body}


def main():
    model, x = Net(), jnp.arange(8.0).reshape(2, 4)
    variables = model.init({{"params": jax.random.key(0), "dropout": jax.random.key(1)}}, x)
    print([list(variables), list(variables["params"])], jax.tree.map(jnp.shape, variables))
    print(model.apply(variables, x), jax.jit(model.apply)(variables, x))
    print(jax.grad(lambda one: model.apply(one, x).sum())(variables))
"""
COMPACT = "@nn.compact\n    def __call__(self, x):\n        {}"
SETUP = "def setup(self):\n        {}\n\n    def __call__(self, x):\n        {}"


def form(body: str, more: str = "") -> str:
    """The form of ``Net`` in a program that prints the same as before."""
    found = printed_alike(PROGRAM.format(body=body, more=more))
    assert found["m.Leaf"] == "lazy"
    return found["m.Net"]


HELD = {
    "called where it is built": COMPACT.format("return nn.Dense(3)(Leaf(5)(nn.Dense(6)(x)))"),
    "alone": COMPACT.format("return Leaf(self.width)(x)"),
    "by a name": COMPACT.format("leaf = Leaf(4)\n        return leaf(leaf(x))"),
    "under a name of its own": COMPACT.format('return nn.Dense(2)(Leaf(5, name="own")(x))'),
    "in a loop": COMPACT.format(
        "for i in range(2):\n            x = Leaf(4)(nn.Dense(4)(x))\n        return x"
    ),
    "under a condition on a field": COMPACT.format(
        "if self.width > 3:\n            x = Leaf(4)(x)\n        return nn.Dense(2)(x)"
    ),
    "its fields follow the module's": COMPACT.format(
        "size = self.width * 2\n        return Leaf(size, act=nn.relu)(x)"
    ),
    "its fields are given a function": "act: Callable = nn.relu\n\n    "
    + COMPACT.format("return Leaf(4, act=self.act)(x)"),
    "its fields are a property's": "@property\n    def wide(self):\n        return {'a': [3, 5]}['a']\n\n    "
    + COMPACT.format("return Leaf(self.wide[1])(x)"),
    "its fields follow what a submodule returns": COMPACT.format(
        "y = nn.Dense(5)(x)\n        return Leaf(y.shape[-1])(y)"
    ),
    "in setup": SETUP.format("self.leaf = Leaf(3)", "return self.leaf(x)"),
    "in a list": SETUP.format(
        "self.leaves = [Leaf(4), Leaf(4)]",
        "for leaf in self.leaves:\n            x = leaf(x)\n        return x",
    ),
    "in a list of a compact method": COMPACT.format(
        "leaves = [Leaf(4) for _ in range(2)]\n        for i, leaf in enumerate(leaves):\n"
        "            x = nn.relu(leaf(x)) if i < len(leaves) - 1 else leaf(x)\n        return x"
    ),
    "in dicts and lists of lists": SETUP.format(
        'self.named = {"a": Leaf(3), "b": Leaf(3)}\n        self.rows = [[Leaf(2)], [Leaf(3), Leaf(4)]]',
        'x = self.named["a"](x) + self.named["b"](x)\n        for row in self.rows:\n'
        "            for leaf in row:\n                x = leaf(x)\n        return x",
    ),
    "a lift of its class": COMPACT.format("return nn.Dense(2)(nn.remat(Leaf)(4)(x))"),
    "a lift under a name": COMPACT.format(
        'leaf = nn.remat(Leaf)\n        return leaf(3, name="own")(leaf(4)(x))'
    ),
    "a lift or the class": COMPACT.format(
        "leaf = Leaf\n        if self.width > 3:\n            leaf = nn.remat(leaf)\n"
        "        for _ in range(2):\n            x = leaf(4)(x)\n        return x"
    ),
    "a lift in setup": SETUP.format(
        "leaf = nn.remat(Leaf) if self.width > 3 else Leaf\n        self.leaves = [leaf(4), leaf(3)]",
        "for leaf in self.leaves:\n            x = leaf(x)\n        return x",
    ),
    "a stack": COMPACT.format(
        'many = nn.vmap(Leaf, variable_axes={"params": 0}, split_rngs={"params": True}, axis_size=2)\n'
        "        return nn.Dense(3)(many(3)(x))"
    ),
    "a partial of its class": COMPACT.format(
        "leaf = functools.partial(Leaf, act=nn.relu)\n        return leaf(3)(leaf(4)(x))"
    ),
    "its class is an annotation": SETUP.format(
        "leaf: Leaf = Leaf(3)\n        self.leaf = leaf",
        "return self.run(self.leaf(x))\n\n    def run(self, x: Leaf | jax.Array) -> Leaf:\n        return x",
    ),
    "given what it gives": SETUP.format(
        "self.leaf = Leaf(4)", "return self.leaf(self.leaf.inner(x))"
    ),
    "one of its methods": SETUP.format("self.leaf = Leaf(3)", "return self.leaf.inner(x)"),
    "handed out by a method": SETUP.format(
        "self.leaf = Leaf(3)",
        "return self.leaf(x)\n\n    def part(self):\n        return self.leaf",
    ),
    "its variables are read": SETUP.format(
        "self.leaf = Leaf(4)",
        'return self.leaf(x) * self.leaf.variables["params"]["out"]["kernel"].sum()',
    ),
    "in a method of the class": SETUP.format(
        "self.leaf = Leaf(3)",
        "return self.run(x)\n\n    def run(self, x):\n        return self.leaf(x)",
    ),
}


@pytest.mark.parametrize("body", HELD.values(), ids=HELD)
def test_a_class_that_calls_a_lazy_submodule_is_explicit(body: str) -> None:
    assert form(body) == "explicit"


OUTER = """
class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(Leaf(4)(x))
"""


def test_a_class_that_holds_an_explicit_one_with_a_lazy_submodule_is_explicit() -> None:
    body = COMPACT.format("for _ in range(2):\n            x = Outer()(x)\n        return x")
    assert form(body, OUTER) == "explicit"


def test_the_constructor_takes_no_size_for_a_lazy_submodule() -> None:
    body = COMPACT.format("return Outer()(Leaf(5)(x))")
    files = {"m.py": PROGRAM.format(body=body, more=OUTER)}
    text = texts(rewrite_in_form(files, "auto"), files)["m.py"].partition("class Net")[2]
    assert "def __init__(self, width: int = 4, *, rngs: nnx.Rngs):" in text
    assert "self.Leaf_0 = Leaf(5)" in text
    assert "self.Outer_0 = Outer(rngs=rngs)" in text


LAZY = {
    "a property gives it a module": "@property\n    def made(self):\n        return nn.LayerNorm\n\n    "
    + COMPACT.format("return Leaf(3, norm=self.made)(x)"),
    "a method that binds nothing": SETUP.format(
        "self.leaf = Plain(4)", "return self.leaf.twice(x)"
    ),
    "a call that binds nothing": SETUP.format("self.leaf = PlainCall(4)", "return self.leaf(x)"),
    "a property that gives one of its own": SETUP.format(
        "self.leaf = Plain(4)", "return self.leaf.layer(self.leaf(x))"
    ),
    "its class in a table": COMPACT.format("return {1: Leaf}[1](4)(x)"),
    "its class or another": COMPACT.format(
        "leaf = Leaf if self.width else nn.Dense\n        return leaf(4)(x)"
    ),
    "its class in a function inside the method": COMPACT.format(
        "leaf = nn.remat(Leaf)\n\n        def run(x):\n            return leaf(4)(x)\n\n        return run(x)"
    ),
    "its class handed on": COMPACT.format("leaf = nn.remat(Leaf)\n        return make(leaf)(x)"),
    "a partial that gives it a module": COMPACT.format(
        "leaf = functools.partial(Leaf, act=nn.Dense(3))\n        return leaf(4)(x)"
    ),
    "a function inside the method": COMPACT.format(
        "leaf = Leaf(4)\n\n        def run(x):\n            return leaf(x)\n\n        return run(x)"
    ),
    "handed to a function of jax": COMPACT.format("return jax.tree.map(Leaf(4), [x])[0]"),
    "called by a method that is handed on": SETUP.format(
        "self.leaf = Leaf(4)",
        "return jax.tree.map(self.run, [x])[0]\n\n    def run(self, x):\n        return self.leaf(x)",
    ),
    "handed to a function": COMPACT.format("return call(Leaf(4), x)"),
    "handed to another submodule": SETUP.format(
        "self.leaf = Leaf(4)\n        self.holder = Holder(self.leaf)", "return self.holder(x)"
    ),
    "given a module": COMPACT.format("return Leaf(4, act=nn.Dense(2))(x)"),
    "given a class": COMPACT.format("act = nn.LayerNorm()\n        return Leaf(4, act=act)(x)"),
    "given a field whose default is a class": "norm: Any = nn.LayerNorm\n\n    "
    + COMPACT.format("return Leaf(4, norm=self.norm)(x)"),
    "what computes the size of another": COMPACT.format(
        "y = Leaf(4)(x)\n        scale = self.param('s', nn.initializers.ones, y.shape)\n        return y * scale"
    ),
    "read by a name that is computed": SETUP.format(
        "self.leaf = Leaf(4)", 'return getattr(self, "le" + "af")(x)'
    ),
    "a field of it is read": SETUP.format(
        "self.leaf = Leaf(4)", "return self.leaf(x) * self.leaf.features"
    ),
}
MORE = """
class Plain(Leaf):
    @nn.nowrap
    def twice(self, x):
        return self.out(x) * 2

    @property
    def layer(self):
        return self.out


class PlainCall(Leaf):
    @nn.nowrap
    def __call__(self, x):
        return self.inner(x) * 2


def call(module, x):
    return module(x)


def make(cls):
    return cls(4)


class Holder(nn.Module):
    held: nn.Module

    def __call__(self, x):
        return self.held(x)
"""


@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_a_class_that_does_more_with_it_is_lazy(body: str) -> None:
    assert form(body, MORE) == "lazy"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return nn.remat(Outer)()(x)", "explicit"),
        ("outer = Outer if self.width else nn.remat(Outer)\n        return outer()(x)", "explicit"),
        ("return nn.Dense(2)(Outer()(functools.partial(Outer)(name='own')(x)))", "explicit"),
        ("return {1: Outer}[1]()(x)", "lazy"),
        ("outer = Outer if self.width else nn.LayerNorm\n        return outer()(x)", "lazy"),
    ],
)
def test_an_explicit_class_that_holds_a_lazy_submodule_is_lifted_in_its_lazy_form(
    body: str, wanted: str
) -> None:
    assert form(COMPACT.format(body), OUTER) == wanted


def test_only_values_of_such_a_class_are_lazy() -> None:
    body = COMPACT.format("return Outer()(nn.remat(Outer)()(x))")
    files = {"m.py": PROGRAM.format(body=body, more=OUTER)}
    text = texts(rewrite_in_form(files, "auto"), files)["m.py"]
    assert "self.CheckpointOuter_0 = nn.remat(lazy(Outer))()\n" in text
    assert "self.Outer_0 = Outer(" in text


def test_a_class_whose_base_holds_a_lazy_submodule_is_explicit_with_it() -> None:
    base = OUTER + "\n\nclass Base(Outer):\n    pass\n"
    found = printed_alike(PROGRAM.format(body=COMPACT.format("return Base()(x)"), more=base))
    assert (found["m.Outer"], found["m.Base"]) == ("explicit", "explicit")


def test_a_lazy_class_that_is_decorated_is_not_held() -> None:
    more = "Leaf = nn.remat(Leaf)\n"
    assert form(COMPACT.format("return Leaf(4)(x)"), more) == "lazy"


INHERITED = """
class Base(nn.Module):
    def run(self, x):
        return {run}


class Other(Base):
    def setup(self):
        self.leaf = Leaf({given})

    def __call__(self, x):
        return self.run(x)
"""


@pytest.mark.parametrize(
    ("run", "form"), [("self.leaf(x)", "explicit"), ("jax.tree.map(self.leaf, [x])[0]", "lazy")]
)
def test_what_a_method_of_a_base_does_with_it_counts(run: str, form: str) -> None:
    more = INHERITED.format(run=run, given="4")
    found = printed_alike(PROGRAM.format(body=COMPACT.format("return Other()(x)"), more=more))
    assert found["m.Other"] == form


def test_an_attribute_that_setup_computes_may_be_given() -> None:
    body = SETUP.format(
        "self.size = self.width * 2\n        self.leaf = Leaf(self.size)", "return self.leaf(x)"
    )
    assert form(body) == "explicit"


TABLE = """
LAYERS = {"norm": functools.partial(nn.LayerNorm, epsilon=1e-5), "dense": functools.partial(nn.Dense, 4)}


class Chosen(nn.Module):
    kind: str = "norm"

    def setup(self):
        self.layer = LAYERS[self.kind]()
        self.twice = lambda x: self.layer(self.layer(x))  # which keeps it lazy

    def __call__(self, x):
        return self.twice(x)
"""


def test_what_a_lazy_submodule_reads_of_its_file_stays_linens() -> None:
    body = COMPACT.format("return nn.Dense(4)(Chosen()(Leaf(4)(x)))")
    assert form(body, TABLE) == "explicit"


def test_each_name_of_an_unpacked_zip_may_be_the_submodule() -> None:
    body = SETUP.format(
        "self.leaves = [Leaf(4), Leaf(4)]",
        "first, (_, other) = zip((0, 1), self.leaves)\n        return jax.tree.map(other, [x])[0]",
    )
    assert form(body) == "lazy"


MERGING = """\
class Renorm(nn.Module):
    use_mean: Any = None

    @nn.compact
    def __call__(self, x, use_mean=None):
        use_mean = nn.merge_param("use_mean", self.use_mean, use_mean)
        mean = self.variable("batch_stats", "mean", jnp.ones, (1, x.shape[-1]))
        x = x - mean.value if use_mean else x + 1.0
        return nn.normalization._normalize(
            self, x, x.mean(0), x.var(0), (0,), (1,), None, jnp.float32, 1e-3, True, True,
            nn.initializers.zeros, nn.initializers.ones,
        )
"""
FLAG = "@nn.compact\n    def __call__(self, x, train=False):\n        {}"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return nn.Dense(2)(Renorm(use_mean=not train)(x))", "explicit"),
        ("norm = Renorm(use_mean=train)\n        return norm(norm(x))", "explicit"),
        ("norm = Renorm(use_mean=train)\n        return jax.tree.map(norm, x)", "lazy"),
        ("return nn.Dense(2)(Leaf(2 + train)(x))", "lazy"),
    ],
)
def test_a_flag_of_the_call_is_given_where_the_lazy_submodule_is_called(
    body: str, wanted: str
) -> None:
    assert form(FLAG.format(body), MERGING) == wanted


TOLD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Inner(nn.Module):
    @nn.compact
    def __call__(self, x):
        assert self.scope is not None
        return nn.Dense(4)(x)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        {body}
        return x

    def turned(self, x):
        return -self(x)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        return Model()(nn.Dense(4)(x), train)

    def turned(self, x):
        return -self(x)


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    variables = Net().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables), Net().apply(variables, x, method=Net.turned))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    "body",
    [
        "x = Inner()(x) if train else x",
        "inner = Inner()\n        if train:\n            x = inner(x)",
        "x = Inner()(x * 2 if train else x)",
    ],
)
def test_a_lazy_submodule_that_the_initial_call_may_not_reach_is_left_to_its_own(body: str) -> None:
    found = printed_alike(TOLD.format(body=body))
    assert found == {"m.Inner": "lazy", "m.Model": "explicit", "m.Net": "explicit"}


TOLD_IN_SETUP = (
    TOLD.split("class Model")[0]
    + """\
class Model(nn.Module):
    def setup(self):
        self.inner = Inner()
        self.head = nn.Dense(4)

    def __call__(self, x, train=True):
        {body}
        return x

    def turned(self, x):
        return -self(x)


class Net"""
    + TOLD.split("class Net")[1]
)


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("x = self.inner(x)\n        x = self.head(x) if not train else x", "explicit"),
        ("x = self.inner(x)\n        x = self.head(x) if train else x", "explicit"),
        ("x = self.head(x)\n        x = self.inner(x) if train else x", "explicit"),
    ],
)
def test_the_initial_call_may_decide_about_explicit_ones_beside_lazy_ones(
    body: str, form: str
) -> None:
    found = printed_alike(TOLD_IN_SETUP.format(body=body))
    assert found == {"m.Inner": "lazy", "m.Model": form, "m.Net": "explicit"}


HOLDER = """\
class Body(nn.Module):
    def setup(self):
        self.table = nn.Embed(7, 4)
        self.leaf = Leaf(4)
        self.own = self.param("kernel", nn.initializers.ones, (1, 4))
        self.named = nn.Dense(4, name="other")

    def __call__(self, x):
        return self.named(self.leaf(x) + self.table(jnp.arange(2)) * self.own)


class Outer(nn.Module):
    def setup(self):
        self.body = Body()

    def __call__(self, x):
        return self.body(x)
"""


def tied(attribute: str, path: str, cls: str = "Body") -> str:
    """A class that multiplies with a variable of a submodule that holds a lazy one."""
    setup = f"self.{attribute} = {cls}()"
    call = f"h = self.{attribute}(x)\n        return h @ self.{attribute}.variables{path}.T"
    return SETUP.format(setup, call)


@pytest.mark.parametrize(
    "body",
    [
        tied("body", '["params"]["table"]["embedding"]'),
        tied("outer", '["params"]["body"]["table"]["embedding"]', "Outer"),
    ],
)
def test_a_variable_may_be_read_past_a_lazy_submodule(body: str) -> None:
    assert form(body, HOLDER) == "explicit"


@pytest.mark.parametrize(
    "body",
    [
        tied("body", '["params"]["leaf"]["out"]["kernel"]'),
        tied("outer", '["params"]["body"]["leaf"]["inside"]["kernel"]', "Outer"),
        tied("body", '["params"]["kernel"]'),
        tied("body", '["params"]["other"]["kernel"]'),
        tied("body", '["params"]["table"]')
        .replace(".T", '["embedding"].T')
        .replace("return", "read = self.body.variables\n        return"),
    ],
)
def test_a_variable_of_a_lazy_submodule_is_not_read_in_an_explicit_class(body: str) -> None:
    assert form(body, HOLDER) == "lazy"
