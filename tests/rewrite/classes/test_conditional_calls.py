"""Submodules that a compact method builds in one place and perhaps calls in another."""

from __future__ import annotations

import textwrap

import pytest

from nnx_migrate.model import Outcome
from tests.rewrite.classes.support import HEADER, converted, refusal
from tests.rewrite.projects import explicit_source as rewrite_source
from tests.rewrite.running import in_auto, printed_alike

MODEL = """\
class M(nn.Module):
  wide: bool

  @nn.compact
  def __call__(self, x):
    layer = nn.Dense(4)
{body}
"""


RUN = """\
def run(held, x):
  return held(x) if callable(held) else x


"""
PAIR = """\
@dataclasses.dataclass
class Pair:
  one: Any
  two: Any


"""
UNDER_A_CONDITION = "'held' is called only under a condition"
NOT_CALLED_HERE = "a lazy submodule is more than called here"


def _model(body: str) -> str:
    return MODEL.format(body=textwrap.indent(textwrap.dedent(body), "    "))


@pytest.mark.parametrize(
    "body",
    [
        "if self.wide:\n  return x\nreturn layer(x)",
        "return self.wide and layer(x)",
        "y = x\nif self.wide:\n  y = 2 * y\n  if y.ndim > 2:\n    y = layer(y)\nreturn y",
        "for i in (1, 2):\n  if i == 2:\n    break\n  x = layer(x)\nreturn x",
        "match self.wide:\n  case True:\n    x = layer(x)\nreturn x",
        "if self.wide:\n  x = layer(x)\nlayer = nn.Dense(4)\nreturn layer(x)",
        (
            "x = layer(x)\nlayers = [nn.Dense(4), nn.Dense(4)]\nfor one in layers:\n  x = one(x)\n"
            "  if self.wide:\n    break\nreturn x"
        ),
        (
            "x = layer(x)\nfor one in [nn.Dense(4), nn.Dense(4)]:\n  x = one(x)\n  if self.wide:\n"
            "    return x\nreturn x"
        ),
        (
            "x = layer(x)\nfound = []\nfor _ in range(2):\n  found.append(nn.Dense(4))\nlayers = found\n"
            "if self.wide:\n  for one in layers:\n    x = one(x)\nreturn x"
        ),
    ],
)
def test_a_submodule_that_is_perhaps_called_is_refused(body: str) -> None:
    assert "is called only under a condition" in refusal(_model(body)).reason


@pytest.mark.parametrize(
    "body",
    [
        "if self.wide:\n  return layer(x)\nreturn layer(2 * x)",
        "if self.wide:\n  x = layer(x)\nelse:\n  x = 2 * layer(x)\nreturn x",
        "if self.wide:\n  x = 2 * x\nreturn layer(x)",
        "found = [layer]\nfor layer in found:\n  x = layer(x)\nreturn x",
        "for layer in [layer]:\n  x = layer(x)\nreturn x",
        "return sum([layer(x) for layer in [layer]])",
        "if x.ndim != 2:\n  raise ValueError(x.shape)\nreturn layer(x)",
        "with jax.named_scope('a'):\n  x = layer(x)\nreturn x",
        "y = layer(x) if self.wide else layer(2 * x)\nreturn y",
        "f = lambda y: layer(y)\nreturn f(x)",
    ],
)
def test_a_submodule_that_every_path_calls_is_built(body: str) -> None:
    assert "self.Dense_0 = nnx.Linear(" in converted(_model(body))


PERHAPS = {
    "a statement": "if self.wide:\n  x = layer(x)\nreturn x",
    "one that returns": "if self.wide:\n  return layer(x)\nreturn x",
    "an expression": "return layer(x) if self.wide else x",
    "part of one": "x = x + (layer(x) if self.wide else x)\nreturn x",
    "called twice": "if self.wide:\n  x = layer(layer(x))\n  x = layer(x)\nreturn x",
    "an else": "if self.wide:\n  x = 2 * x\nelse:\n  x = layer(x)\nreturn x",
    "bound to a function": "y = x\nif self.wide:\n  layer = nn.relu\nx = x + 1\nreturn layer(x)",
    "over a size": "if x.shape[0] != 3:\n  x = layer(x)\nreturn x",
    "over a value": "if x.sum() > 7:\n  x = layer(x)\nreturn x",
    "in front of another": "other = nn.Dense(5)\nif self.wide:\n  x = layer(x)\nreturn other(x)",
    "the condition changes": "y = x\nx = x[..., :3]\nif x.shape[-1] == 4:\n  y = layer(y)\nreturn y",
    "it is known below only": "wide = self.wide\nif wide:\n  x = layer(x)\nreturn x",
    "a list of it grows": "if seen:\n  x = layer(x)\nreturn x",
    "the method may have returned": "if x.ndim > 3:\n  return x\nif self.wide:\n  x = layer(x)\nreturn x",
    "a condition inside": "if self.wide:\n  if x.ndim > 2:\n    x = layer(x)\nreturn x",
    "in a loop": "for _ in range(2):\n  if self.wide:\n    x = layer(x)\nreturn x",
    "two conditions": "if self.wide:\n  x = layer(x)\nif x.ndim > 2:\n  x = layer(x)\nreturn x",
    "another name": "if self.wide:\n  other = layer\n  x = other(x)\nreturn x",
    "a condition that calls": "if check(x):\n  x = layer(x)\nreturn x",
    "bound anew where the condition changes": (
        "x = x[..., :3]\nif x.shape[-1] == 4:\n  layer = nn.relu\nreturn layer(x)"
    ),
    "bound anew deeper": "if self.wide:\n  if x.ndim > 2:\n    layer = nn.relu\nreturn layer(x)",
    "bound anew twice": (
        "if self.wide:\n  layer = nn.relu\nif x.ndim > 2:\n  layer = nn.tanh\nreturn layer(x)"
    ),
    "bound anew or called": (
        "if self.wide:\n  layer = nn.relu\nelse:\n  x = layer(x)\nreturn layer(x)"
    ),
    "bound anew, and perhaps called": (
        "if self.wide:\n  layer = nn.relu\nif x.ndim > 2:\n  x = layer(x)\nreturn x"
    ),
    "bound anew in a loop": "for _ in range(2):\n  if self.wide:\n    layer = nn.relu\nreturn layer(x)",
}


MAIN = """

def check(x):
  return x.shape[0] > 1


def main():
  for wide in (True, False):
    for x in (jnp.ones((2, 4)), jnp.ones((3, 4)), jnp.ones((1, 2, 4))):
      variables = M(wide).init(jax.random.key(0), x)
      print(jax.tree.map(jnp.shape, variables), M(wide).apply(variables, x))
"""


@pytest.mark.parametrize("body", PERHAPS.values(), ids=PERHAPS)
def test_a_submodule_that_is_perhaps_called_is_left_to_its_first_call(body: str) -> None:
    source = _model(body).replace("    layer = ", "    seen = []\n    layer = ", 1)
    source = source.replace("nn.Dense(4)\n", "nn.Dense(4)\n    seen.append(1)\n", 1)
    assert printed_alike(HEADER + source + MAIN) == {"m.M": "explicit"}
    assert "self.Dense_0 = nn.Dense(4)\n" in in_auto(HEADER + source)


@pytest.mark.parametrize("body", ["x = run(layer, x)", "x = layer.__call__(x)"])
def test_one_that_is_more_than_called_keeps_its_class_lazy(body: str) -> None:
    source = RUN + _model(f"if self.wide:\n  {body}\nreturn x")
    assert printed_alike(HEADER + source + MAIN) == {"m.M": "lazy"}


def test_a_submodule_of_a_lambda_that_is_not_called_is_refused() -> None:
    found = refusal(_model("f = lambda y: layer(y) if self.wide else y\nreturn x"))
    assert found.reason == "a lazy submodule is used in a function inside the method"


def test_a_submodule_of_a_condition_that_only_the_call_knows_is_refused() -> None:
    source = _model("if x.sum() > 0:\n  x = layer(x)\nreturn x")
    assert isinstance(refusal(source).reason, str)


HELD = [
    ("[nn.Dense(4)]", NOT_CALLED_HERE),
    ("(nn.Dense(4), nn.relu)", NOT_CALLED_HERE),
    ("{'a': nn.Dense(4)}", NOT_CALLED_HERE),
    ("[nn.Dense(4) for _ in range(2)]", NOT_CALLED_HERE),
    ("list([nn.Dense(4)])", NOT_CALLED_HERE),
    ("[nn.Dense(4)] * 1", NOT_CALLED_HERE),
    ("nn.Sequential([nn.Dense(4), nn.relu])", UNDER_A_CONDITION),
    ("nn.RNN(nn.SimpleCell(4))", UNDER_A_CONDITION),
    ("tuple(nn.Dense(4) for _ in range(2))", NOT_CALLED_HERE),
    ("list(zip([nn.Dense(4)], (1, 2)))", NOT_CALLED_HERE),
    ("dict(a=nn.Dense(4))", NOT_CALLED_HERE),
    ("partial(run, nn.Dense(4))", UNDER_A_CONDITION),
    ("Pair(nn.Dense(4), nn.relu)", NOT_CALLED_HERE),
    ("(nn.Dense(4), nn.relu)[0]", UNDER_A_CONDITION),
]


@pytest.mark.parametrize(("value", "reason"), HELD)
def test_submodules_that_are_held_and_perhaps_called_are_refused(value: str, reason: str) -> None:
    body = f"held = {value}\nx = layer(x)\nif self.wide:\n  x = run(held, x)\nreturn x"
    assert reason in refusal(RUN + _model(body)).reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("layer", UNDER_A_CONDITION),
        ("[layer]", NOT_CALLED_HERE),
        ("nn.Sequential([layer, nn.relu])", UNDER_A_CONDITION),
        ("{'a': layer}", NOT_CALLED_HERE),
        ("dict(zip('a', [layer]))", NOT_CALLED_HERE),
        ("other = layer", UNDER_A_CONDITION),
    ],
)
def test_submodules_that_another_name_holds_and_perhaps_calls_are_refused(
    value: str, reason: str
) -> None:
    body = f"held = {value}\nif self.wide:\n  x = run(held, x)\nreturn x"
    assert reason in refusal(RUN + _model(body)).reason


def test_a_submodule_that_one_of_two_names_surely_calls_is_built() -> None:
    body = "held = layer\nif self.wide:\n  x = held(x)\nreturn layer(x)"
    assert "self.Dense_0 = nnx.Linear(" in converted(_model(body))


@pytest.mark.parametrize("value", ["[nn.Dense(4)]", "{'a': nn.Dense(4)}"])
def test_submodules_that_are_held_and_surely_read_are_built(value: str) -> None:
    body = f"held = {value}\nx = held[{'0' if '[' in value[0] else repr('a')}](x)\nreturn layer(x)"
    assert converted(_model(body)).count("nnx.Linear(") == 2


TWO = "held = [nn.Dense(4), nn.Dense(4)]\n"
KEYED = "held = {'a': nn.Dense(4), 'b': nn.Dense(4)}\n"


@pytest.mark.parametrize(
    "body",
    [
        TWO + "x = held[0](x)\nif self.wide:\n  x = held[1](x)",
        TWO + "x = held[-1](x)\nif self.wide:\n  x = held[-2](x)",
        KEYED + "x = held['a'](x)\nif self.wide:\n  x = held['b'](x)",
        "held = []\nheld.append(nn.Dense(4))\nif self.wide:\n  x = held[0](x)",
        "pair = [nn.Dense(4), nn.Dense(4)]\none, held = pair\nx = one(x)\nif self.wide:\n  x = held(x)",
        "held = nn.Dense(4)\ndef f(y):\n  return held(y)\nif self.wide:\n  x = f(x)",
        "held = Pair(nn.Dense(4), nn.Dense(4))\nx = held.one(x)\nif self.wide:\n  x = held.two(x)",
        "held = {}\nheld['a'] = nn.Dense(4)\nif self.wide:\n  x = held['a'](x)",
        "held = []\nheld += [nn.Dense(4)]\nif self.wide:\n  x = held[0](x)",
        "(other, held), _ = (nn.relu, nn.Dense(4)), 1\nif self.wide:\n  x = held(other(x))",
        "for held in [nn.Dense(4)]:\n  if self.wide:\n    x = held(x)",
        "for i, held in enumerate([nn.Dense(4)] * 2):\n  if i:\n    x = held(x)",
        "for (held, scale) in zip([nn.Dense(4)], (2,)):\n  x = held(x) if scale else x",
        TWO + "for held in held:\n  if self.wide:\n    x = held(x)",
        TWO + "x = sum(one(x) for one in held if self.wide)",
        "held = nn.Dense(4)\nf = lambda y: held(y)\nif self.wide:\n  x = f(x)",
        "held = nn.Dense(4)\nf = lambda y: held(y)\ndef g(y):\n  return f(y)\nif self.wide:\n  x = g(x)",
    ],
)
def test_one_of_several_or_one_in_a_function_that_is_perhaps_called_is_refused(body: str) -> None:
    reason = refusal(PAIR + _model(f"{body}\nreturn layer(x)")).reason
    assert UNDER_A_CONDITION in reason


@pytest.mark.parametrize(
    "body",
    [
        TWO + "x = held[0](held[1](x))",
        TWO + "x = held[0](held[-1](x))",
        TWO + "for i in range(2):\n  x = held[i](x)",
        TWO + "for one in held:\n  x = one(x)",
        TWO + "for one in held[:1]:\n  x = one(x)\nfor one in held[1:]:\n  x = one(x)",
        TWO + "one, two = held\nx = two(one(x))",
        KEYED + "x = held['a'](held['b'](x))",
        "held = nn.Dense(4)\nother = nn.Dense(4)\ndef f(y):\n  return held(other(y))\nx = f(x)",
        TWO + "for i, one in enumerate(held):\n  x = one(x)\n  if i < 1:\n    x = nn.relu(x)",
        TWO + "for one, scale in zip(held, (1, 2)):\n  x = one(x) * scale",
        TWO + "x = sum(one(x) for one in held)",
    ],
)
def test_several_or_those_in_a_function_that_are_surely_called_are_built(body: str) -> None:
    assert converted(_model(f"{body}\nreturn layer(x)")).count("nnx.Linear(") == 3


def test_a_submodule_that_a_branch_binds_and_the_rest_calls_is_built() -> None:
    text = converted(
        """\
        class M(nn.Module):
          wide: bool

          @nn.compact
          def __call__(self, x):
            if self.wide:
              layer = nn.Dense(4)
            else:
              layer = nn.Dense(5)
            return layer(x)
        """
    )
    assert text.count("nnx.Linear(") == 2


def test_a_dropout_that_is_perhaps_called_is_built_since_it_has_no_parameters() -> None:
    body = (
        "drop = nn.Dropout(0.5, deterministic=True)\nif self.wide:\n  x = drop(x)\nreturn layer(x)"
    )
    assert "self.Dropout_0 = " in converted(_model(body))


HELPER = """\
import flax.linen as nn


class M(nn.Module):
  wide: bool

  def block(self, x):
    return nn.Dense(4)(x)

  @nn.compact
  def __call__(self, x):
    y = self.block(x)
    if self.wide:
      return x
    return y
"""


def test_what_a_helper_that_builds_returns_may_be_left_unused() -> None:
    (found,) = rewrite_source(HELPER).classes
    assert (found.outcome, found.reason) == (Outcome.REWRITTEN, None)


CHOSEN = """\
class M(nn.Module):
  flag: bool = False
  kind: str = "a"

  def setup(self):
    self.a = nn.Dense(3)
    self.b = nn.Dense(3)

  def pick(self):
    return self.a if self.flag else self.b

  def __call__(self, x):
    {0}
"""
BY_A_FLAG = {
    "what is called": "return (self.a if self.flag else nn.relu)(self.b(x))",
    "a local name": "f = self.a if self.flag else nn.relu\n    return f(self.b(x))",
    "a branch": (
        "if self.flag:\n      f = self.a\n    else:\n      f = nn.relu\n    return f(self.b(x))"
    ),
    "a method": "return (self.a if self.flag else self.b).__call__(x)",
    "what a method returns": "return self.pick()(x)",
}


@pytest.mark.parametrize("call", BY_A_FLAG.values(), ids=BY_A_FLAG)
def test_a_submodule_that_a_flag_chooses_is_built_under_the_flag(call: str) -> None:
    built = converted(CHOSEN.format(call)).partition("if self.flag:\n")[2]
    assert built.lstrip().startswith("self.a = nnx.Linear(")


BY_MORE = {
    "a key": "return {'a': self.a, 'b': self.b}[self.kind](x)",
    "a rank": "return [self.a, self.b][x.ndim - 2](x)",
    "an index": "return [self.a, self.b][int(self.flag)](x)",
}


BY_MORE_MAIN = """

def main():
    for model in (M(), M(True, "b"), M(False, "b")):
        for x in {inputs}:
            variables = model.init(jax.random.key(0), x)
            print(jax.tree.map(jnp.sum, variables))
            print(model.apply(variables, x))
"""


@pytest.mark.parametrize("call", BY_MORE.values(), ids=BY_MORE)
def test_a_submodule_that_a_key_chooses_is_left_to_its_first_call(call: str) -> None:
    source = CHOSEN.format(call)
    text = converted(source)
    assert "self.a = nn.Dense(3)\n" in text
    assert "self.b = nn.Dense(3)\n" in text
    inputs = "(jnp.ones((2, 4)), jnp.ones((1, 2, 4)))"
    printed_alike(HEADER + source + BY_MORE_MAIN.format(inputs=inputs))


ROUNDS = """\
class M(nn.Module):
  n: int
  m: int

  @nn.compact
  def __call__(self, x):
    x = nn.Dense(4)(x)
    layer = nn.Dense(4)
{body}
    return x
"""


@pytest.mark.parametrize(
    ("body", "test"),
    [
        ("for _ in range(self.n):\n  x = layer(x)", "self.n > 0"),
        ("layers = [layer]\nfor _ in range(self.n):\n  x = layers[0](x)", "self.n > 0"),
        ("n = self.n + 1\nfor _ in range(n):\n  x = layer(x)", "self.n + 1 > 0"),
        (
            "for _ in range(self.n):\n  for _ in range(self.m):\n    x = layer(x)",
            "self.n > 0 and self.m > 0",
        ),
    ],
)
def test_a_layer_that_only_a_loop_calls_is_none_without_a_round(body: str, test: str) -> None:
    text = converted(ROUNDS.format(body=textwrap.indent(body, "    ")))
    made = f"if {test}:\n      self.Dense_1 = nnx.Linear(4, 4, rngs=rngs)\n"
    assert f"{made}    else:\n      self.Dense_1 = None\n" in text


@pytest.mark.parametrize(
    "body",
    [
        "for _ in range(self.n):\n  x = layer(x)\nx = layer(x)",
        "for _ in range(2):\n  x = layer(x)",
        "x = layer(x)\nfor _ in range(self.n):\n  x = nn.Dense(4)(x)",
        "x = layer(x)\nfor _ in range(self.n):\n  one = nn.Dense(4)\n  x = one(x)",
    ],
)
def test_a_layer_that_is_called_outside_of_loops_or_built_in_them_is_built_always(
    body: str,
) -> None:
    assert "None" not in converted(ROUNDS.format(body=textwrap.indent(body, "    ")))


NUMBERED_AT_RUN_TIME = """
from functools import partial
from typing import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    flag: bool = True
    make: Callable[..., nn.Module] = nn.Dense

    @nn.compact
    def __call__(self, x):
        short = nn.Dense(4)
        make = partial(self.make, features=4)
        for layer in [make(), make()]:
            x = layer(x)
        if self.flag:
            x = short(x)
        return x


def main():
    x = jnp.linspace(-1, 1, 12).reshape(2, 6)
    for flag in (False, True):
        variables = Model(flag).init(jax.random.key(0), x)
        print(jax.tree.map(lambda one: float(one.sum()).hex(), variables))
"""


def test_a_number_given_at_run_time_counts_what_is_not_called() -> None:
    assert printed_alike(NUMBERED_AT_RUN_TIME) == {"m.Model": "explicit"}


MEASURED = """\
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    # A layer under one condition, and a size behind it that is measured.
    flag: bool = False
    rounds: int = 2
    norm: Any = nn.LayerNorm

    @nn.compact
    def __call__(self, x):
        layer = nn.Dense(x.shape[-1])
        if x.shape[0] > 1 and self.flag:
            for _ in range(1, self.rounds):
                x = layer(x)
        if x.ndim == 2:
            x = x + self.norm(name="scale")(nn.Dense(4)(x))
        return x


class Net(nn.Module):
    flag: bool = False

    @nn.compact
    def __call__(self, x):
        return Part(self.flag)(x)


def main():
    for flag in (False, True):
        print(jax.tree.map(jnp.shape, Net(flag).init(jax.random.key(0), jnp.ones((3, 4)))))
"""


def test_a_layer_that_is_not_built_is_read_again_as_none() -> None:
    assert printed_alike(MEASURED) == {"m.Part": "explicit", "m.Net": "explicit"}


GIVEN = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Around(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(self.inner(x))


class Net(nn.Module):
    flag: bool = False

    @nn.compact
    def __call__(self, x):
        {built}
        if self.flag:
            x = around(x)
        return x


def main():
    for flag in (False, True):
        variables = Net(flag).init(jax.random.key(0), jnp.ones((2, 3)))
        print(flag, jax.tree.map(jnp.shape, variables))
"""


@pytest.mark.parametrize(
    "built",
    [
        "around = Around(nn.LayerNorm())",
        "around = Around(inner=Around(nn.LayerNorm()))",
        "norm = nn.LayerNorm()\n        around = Around(norm)",
    ],
)
def test_one_that_is_given_a_submodule_and_perhaps_called_keeps_its_class_lazy(built: str) -> None:
    assert printed_alike(GIVEN.format(built=built))["m.Net"] == "lazy"
