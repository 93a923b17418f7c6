"""What only a call shows is left to it: the class is explicit, and holds what its first call makes."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import in_auto, lazy, net_alike, printed_alike

HEAD = """\
import functools
from typing import Any, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


def widen(x, n):
    return jnp.concatenate([x] * n, -1)


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(self.width)(x))
        self.sow("intermediates", "seen", x)
        return x


class Pair(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x) * nn.Dense(1)(x)


"""


def compact(body: str, fields: str = "widths: Sequence[int] = (4, 6)") -> str:
    lines = [f"    {one}" for one in fields.splitlines()]
    text = textwrap.indent(textwrap.dedent(body), " " * 8)
    return (
        HEAD
        + "\n".join(["class Net(nn.Module):", *lines, ""])
        + f"\n    @nn.compact\n    def __call__(self, x):\n{text}"
    )


def setup(body: str, call: str, more: str = "") -> str:
    made, run = (textwrap.indent(textwrap.dedent(one), " " * 8) for one in (body, call))
    other = textwrap.indent(textwrap.dedent(more), " " * 4)
    return (
        HEAD
        + f"class Net(nn.Module):\n    n: int = 3\n    block: Any = Pair\n\n    def setup(self):\n{made}\n"
        + f"\n    def __call__(self, x, flag=None):\n{run}\n{other}"
    )


SKIPS = "skips = []\nfor w in self.widths:\n    x = nn.Dense(w)(x)\n    skips.append(x)\n"
IN_LOOPS = {
    "a layer": (
        SKIPS + "for w in self.widths:\n"
        "    x = nn.relu(nn.Dense(w)(jnp.concatenate([x, skips.pop()], -1)))\nreturn x",
        "nn.Dense(w)",
    ),
    "a layer with a name": (
        SKIPS + "for w in self.widths:\n"
        "    x = nn.Dense(w, name=f'up_{w}')(jnp.concatenate([x, skips.pop()], -1))\nreturn x",
        "up_{w}', nn.Dense(w))",
    ),
    "a class of the project": (
        SKIPS + "for w in self.widths:\n"
        "    x = Block(w)(jnp.concatenate([x, skips.pop()], -1))\nreturn x",
        "lazy(Block)(w)",
    ),
    "a partial": (
        "dense = functools.partial(nn.Dense, use_bias=False)\n"
        + SKIPS
        + "for w in self.widths:\n    x = dense(w)(jnp.concatenate([x, skips.pop()], -1))\nreturn x",
        "lazy(dense)(w)",
    ),
    "statistics": (
        "for i in range(2):\n    x = nn.BatchNorm(use_running_average=True)(widen(x, i + 1))\nreturn x",
        "nn.BatchNorm(",
    ),
}


@pytest.mark.parametrize(("body", "text"), IN_LOOPS.values(), ids=IN_LOOPS)
def test_a_width_that_differs_from_round_to_round_is_taken_in_the_call(
    body: str, text: str
) -> None:
    source = compact(body)
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"
    made = in_auto(source)
    assert text in made.partition("class Net")[2]
    assert "dict" not in made


def test_a_class_in_a_field_is_built_by_its_lazy_form() -> None:
    source = setup(
        "self.parts = [self.block(w) for w in (4, 6)]",
        "for i, part in enumerate(self.parts):\n    x = part(widen(x, i + 1))\nreturn x",
    )
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"
    assert "lazy(self.block)(w)" in in_auto(source)


BIAS = """\
class Attention(nn.Module):
    has_bias: bool

    def setup(self):
        self.q = nn.Dense(3)
        if self.has_bias:
            self.bias = nn.Embed(4, 3)

    def __call__(self, x, bias=None):
        if bias is None:
            bias = self.bias(jnp.arange(x.shape[0])) if self.has_bias else jnp.zeros((len(x), 3))
        return self.q(x) + bias, bias


class Net(nn.Module):
    def setup(self):
        self.blocks = [Attention(i == 0, name=str(i)) for i in range(3)]

    def __call__(self, x):
        bias = None
        for block in self.blocks:
            x, bias = block(x, bias)
        return x
"""


def test_a_part_that_the_rounds_before_decide_about_is_made_when_it_is_called() -> None:
    forms = net_alike(HEAD + BIAS, "jnp.ones((4, 3))")
    assert (forms["m.Attention"], forms["m.Net"]) == ("explicit", "explicit")
    assert "self.bias = nn.Embed(4, 3)" in in_auto(HEAD + BIAS)


LEFT_OUT = {
    "the shape decides": ("if int(x.shape[0] * 3) % 2:\n    x = self.part(x)\nreturn x", ""),
    "nobody calls it": ("return x", "def size(self):\n    return 3\n"),
    "another method calls it under a condition": (
        "return x",
        "def score(self, x, deep):\n    return self.part(x) if deep else x\n",
    ),
    "another method calls it": ("return x", "def score(self, x):\n    return self.part(x)\n"),
}


@pytest.mark.parametrize(("call", "more"), LEFT_OUT.values(), ids=LEFT_OUT)
@pytest.mark.parametrize("rows", [2, 3])
def test_a_part_that_the_initial_call_may_not_reach_is_made_when_it_is_called(
    call: str, more: str, rows: int
) -> None:
    source = setup(
        "self.first = nn.Dense(3)\nself.part = Pair(3)", f"x = self.first(x)\n{call}", more
    )
    assert net_alike(source, f"jnp.ones(({rows}, 3))")["m.Net"] == "explicit"
    assert "self.part = lazy(Pair)(3)" in in_auto(source)


DEEP = """\
class Deep(nn.Module):
    def setup(self):
        self.part = nn.Dense(3)

    def deepen(self, x):
        return self.part(x)

    def __call__(self, x):
        return self.deepen(x)


class Net(nn.Module):
    def setup(self):
        self.parts = [Deep() for _ in range(2)]

    def __call__(self, x):
        for i, part in enumerate(self.parts):
            x = {}(widen(x, i + 1))
        return x
"""


def test_a_method_of_the_class_itself_may_make_that_call() -> None:
    source = setup(
        "self.parts = [Pair(3) for _ in range(self.n - 1)]",
        "return self.deepen(self.deepen(x))",
        "def deepen(self, x):\n    for i in range(self.n):\n"
        "        x = self.parts[i](x) if i < self.n - 1 else nn.relu(x)\n    return x\n",
    )
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"
    assert "lazy(Pair)(3)" in in_auto(source)


@pytest.mark.parametrize(("call", "form"), [("part", "explicit"), ("part.deepen", "lazy")])
def test_a_method_that_another_class_calls_first_keeps_its_own_class_lazy(
    call: str, form: str
) -> None:
    forms = net_alike(HEAD + DEEP.format(call), "jnp.ones((2, 3))")
    assert (forms["m.Deep"], forms["m.Net"]) == (form, "explicit")


def test_variables_statistics_and_masks_are_linens() -> None:
    main = """

def main():
    net, x = Net(), jnp.arange(6.0).reshape(2, 3)
    variables = net.init(jax.random.key(0), x)
    out, changed = net.apply(variables, x, mutable=["batch_stats", "intermediates"])
    print(out, jax.tree.map(jnp.sum, changed), sorted(variables["params"]))
    loss = lambda params: net.apply({**variables, "params": params}, x, mutable="batch_stats")[0].sum()
    print(jax.tree.map(jnp.sum, jax.jit(jax.grad(loss))(variables["params"])))
    print(net.bind(variables).variables["params"]["Block_1"]["Dense_0"]["bias"])
    print(jax.tree.map(jnp.shape, jax.eval_shape(net.init, jax.random.key(1), x)))
"""
    body, _ = IN_LOOPS["a class of the project"]
    source = compact(
        body.replace(
            "Block(w)(jnp.concatenate([x, skips.pop()], -1))",
            "Block(w)(jnp.concatenate([x, skips.pop()], -1), True)",
        )
    )
    assert printed_alike(source + main)["m.Net"] == "explicit"


GIVEN = """\
class Attention(nn.Module):
    make: Any = None
    norm: Any = nn.LayerNorm

    @nn.compact
    def __call__(self, x):
        make = Pair if isinstance(self.make, int) else self.make  # which class that is, nobody knows
        return self.norm()(make()(x))


class Net(nn.Module):
    n: int = 4

    @nn.compact
    def __call__(self, x):
        x = Attention(make=functools.partial(Pair, width=self.n))(x)
        x = Attention(functools.partial(nn.Dense, self.n), norm=nn.RMSNorm)(x)
        return nn.Dense(2)(x)
"""


def test_a_lazy_submodule_is_given_classes_in_their_lazy_form() -> None:
    forms = net_alike(HEAD + GIVEN, "jnp.ones((2, 3))")
    assert (forms["m.Attention"], forms["m.Net"]) == ("lazy", "explicit")
    made = in_auto(HEAD + GIVEN)
    assert "make=functools.partial(lazy(Pair), width=self.n)" in made
    assert "functools.partial(nn.Dense, self.n), norm=nn.RMSNorm" in made


def test_so_is_one_whose_width_only_its_call_shows() -> None:
    before = "        x = Attention(make=functools.partial(Pair, width=self.n))(x)\n"
    after = (
        "        for i in range(2):\n"
        "            x = Attention(make=functools.partial(Pair, width=self.n))(widen(x, i + 1))\n"
    )
    source = HEAD + GIVEN.replace(before, after)
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"
    assert "make=functools.partial(lazy(Pair), width=self.n)" in in_auto(source)


def test_a_partial_that_holds_a_module_is_none_that_a_lazy_submodule_may_be_given() -> None:
    wrap = """\
class Wrap(nn.Module):
    inner: Any

    @nn.compact
    def __call__(self, x):
        return self.inner(x)


class Net("""
    given = GIVEN.replace("partial(Pair, width=self.n)", "partial(Wrap, inner=nn.Dense(4))")
    source = HEAD + given.replace("class Net(", wrap)
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "lazy"
    assert "a lazy submodule may be given a module here" in lazy(source, "Net")


EMBEDDED = """\
class Net(nn.Module):
    @nn.compact
    def __call__(self, ids=None, embedded=None):
        x = nn.Embed(7, 4)(ids) if embedded is None else embedded
        for i in range(2):
            x = nn.Dense(4)(widen(x, i + 1))
        return x
"""


@pytest.mark.parametrize("inputs", [["jnp.arange(3)"], ["None", "jnp.ones((3, 5))"]])
def test_what_the_first_call_is_given_decides_about_other_parts(inputs: list[str]) -> None:
    assert net_alike(HEAD + EMBEDDED, *inputs)["m.Net"] == "explicit"


def test_a_tuple_of_parts_grows() -> None:
    source = setup(
        "self.parts = (Pair(3),)\nif self.n > 2:\n    self.parts += (nn.Dense(3, name='more'),)",
        "for i, part in enumerate(self.parts):\n    x = part(widen(x, i + 1))\nreturn x",
    )
    net_alike(source, "jnp.ones((2, 3))")


def test_a_loop_without_rounds_by_default_leaves_the_width_as_it_was() -> None:
    source = setup(
        "self.part = nn.Dense(5)\nself.last = nn.Dense(2)",
        "for _ in range(self.n):\n    x = self.part(x)\nreturn self.last(x)",
    )
    assert (
        net_alike(source.replace("n: int = 3", "n: int = 0"), "jnp.ones((2, 3))")["m.Net"]
        == "explicit"
    )


REFUSED = {
    "its class is asked": (
        "for i in range(2):\n    part = Pair(3)\n    x = part(widen(x, i + 1)) if isinstance(part, Pair) else x\nreturn x",
        "a lazy submodule is more than called here",
    ),
    "another submodule gets it": (
        "for i in range(2):\n    x = nn.BatchApply(nn.Dense(3))(widen(x, i + 1))\nreturn x",
        "a lazy submodule",
    ),
    "a checkpoint runs it": (
        "for i in range(2):\n    part = nn.Dense(3)\n    x = jax.checkpoint(lambda y: part(y))(widen(x, i + 1))\nreturn x",
        "a lazy submodule is used in a function inside the method",
    ),
}


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_more_than_called_keeps_the_class_lazy(body: str, reason: str) -> None:
    assert reason in lazy(compact(body), "Net")


def test_a_width_of_a_class_in_a_field_is_that_of_its_own_round() -> None:
    """What one loop measures of each block, another one does not know: the last was taken for all."""
    source = compact(
        "kept = []\nfor w in self.widths:\n    x = self.block(w)(x)\n    kept.append(x)\n"
        "for i in range(2):\n    x = x + nn.Dense(6)(kept.pop())\nreturn x",
        "widths: Sequence[int] = (4, 6)\nblock: Any = Pair",
    )
    net_alike(source, "jnp.ones((2, 3))")


def test_a_width_that_a_loop_changes_is_not_carried_by_the_loop_whose_arrays_it_reads() -> None:
    source = compact(
        "kept = []\nfor w in (3, 4):\n    x = nn.Dense(w)(x)\n    kept.append(x)\n"
        "for i in range(2):\n    x = nn.Dense(2)(kept[i]) + nn.Dense(2)(x)\nreturn x"
    )
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"


INSIDE = {
    "a lambda": "f = lambda y: layer(y) if self.n > 3 else y\nreturn f(x)",
    "a function": "def f(y):\n    if self.n > 3:\n        y = layer(y)\n    return y\nreturn f(x)",
    "a function that another one calls": "g = lambda y: layer(y) if self.n > 3 else y\nf = lambda y: g(y) + 1\nreturn f(x)",
}


@pytest.mark.parametrize("body", INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("n", [3, 4])
def test_a_condition_inside_of_a_local_function_is_one(body: str, n: int) -> None:
    """The function runs always, the layer does not: its parameters were made in silence."""
    net_alike(compact(f"layer = nn.Dense(4)\n{body}", f"n: int = {n}"), "jnp.ones((2, 3))")


@pytest.mark.parametrize("flag", [True, False])
def test_names_that_linen_counts_are_those_of_what_the_first_call_makes(flag: bool) -> None:
    source = compact(
        "first = nn.Dense(4) if self.flag else nn.LayerNorm()\nparts = [nn.Dense(4), nn.LayerNorm()]\n"
        "for _ in range(2):\n    for part in parts:\n        x = part(x)\nreturn first(x)",
        f"flag: bool = {flag}",
    )
    assert net_alike(source, "jnp.ones((2, 4))")["m.Net"] == "explicit"
    assert "named_in_linen" in in_auto(source)


PASSED = """\
class Cross(nn.Module):
    def setup(self):
        self.q, self.k = nn.Dense(3), nn.Dense(3)

    def __call__(self, x, memory):
        return self.q(x) + self.k(memory)


class Layer(nn.Module):
    causal: bool

    def setup(self):
        self.own = nn.Dense(3)
        if self.causal:
            self.cross = Cross()

    def __call__(self, x, memory=None, mode="a"):
        x = self.own(x)
        if self.causal and memory is not None and mode == "a":
            x = self.cross(x, memory)
        return x


class Around(nn.Module):
    causal: bool

    def setup(self):
        self.layer = Layer(self.causal)

    def __call__(self, x, memory=None):
        return self.layer(x, memory)


class Net(nn.Module):
    def setup(self):
        self.encoder, self.decoder = Around(False), Around(True)

    def __call__(self, x, memory=None):
        return self.decoder(self.encoder(x), memory)
"""


@pytest.mark.parametrize("inputs", [["jnp.ones((2, 3))"], ["jnp.ones((2, 3))", "jnp.ones((2, 5))"]])
def test_what_builds_the_class_passes_it_no_size_that_a_first_call_takes(inputs: list[str]) -> None:
    net_alike(HEAD + PASSED, *inputs)


MADE_BY_FUNCTIONS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


def outside(n):
    return nn.Dense(n, use_bias=False)


class Net(nn.Module):
    flag: bool = False

    def inside(self, n):
        return nn.Dense(n, use_bias=self.flag)

    @nn.compact
    def __call__(self, x):
        one = {made}(4)
        if not self.flag:
            x = one(x)
        return nn.Dense(2)(x)


def main():
    x = jnp.ones((2, 4))
    for net in (Net(), Net(True)):
        variables = net.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), net.apply(variables, x))
"""


@pytest.mark.parametrize("made", ["outside", "self.inside"])
def test_what_functions_build_is_not_left_to_first_calls(made: str) -> None:
    assert printed_alike(MADE_BY_FUNCTIONS.replace("{made}", made))["m.Net"] == "lazy"
