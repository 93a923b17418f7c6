"""Submodules of ``setup`` that Linen's initial call may not reach, or only reads there."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import HEADER, converted, refusal
from tests.rewrite.running import printed_alike

LISTED = """\
class M(nn.Module):
  flag: bool
  n: int

  def setup(self):
    self.first = nn.Dense(6)
    self.layers = [nn.Dense(6) for _ in range(self.n)]

  def __call__(self, x):
    x = self.first(x)
{body}
    return x
"""
TWO = """\
class M(nn.Module):
  flag: bool

  def setup(self):
    self.first = nn.Dense(6)
    self.second = nn.Dense(6)
{setup}

  def __call__(self, x):
    x = self.first(x)
{body}
    return x
"""


def _listed(body: str) -> str:
    return LISTED.format(body=textwrap.indent(body, "    "))


def _two(body: str, setup: str = "pass") -> str:
    return TWO.format(body=textwrap.indent(body, "    "), setup=f"    {setup}")


RUN = """

def main():
    x = jnp.linspace(-1, 1, 12).reshape(2, 6)
    for model in ({models}):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.sum, variables))
        print(model.apply(variables, x))
"""


def _alike(source: str, *models: str) -> str:
    """The form of ``M``, after what its models make and give was compared in all forms."""
    return printed_alike(HEADER + source + RUN.format(models=", ".join(models)))["m.M"]


@pytest.mark.parametrize(
    "body",
    [
        "for layer in self.layers:\n  x = layer(x)\n  if self.flag:\n    break",
        "for layer in self.layers:\n  x = layer(x)\n  if self.flag:\n    return x",
        "for i, layer in enumerate(self.layers, 1):\n  if i == self.n:\n    continue\n  x = layer(x)",
        "x = x + sum([layer(x) for i, layer in enumerate(self.layers) if i % 2 == 0])",
    ],
)
def test_layers_of_a_list_that_some_rounds_do_not_reach_are_left_to_their_first_calls(
    body: str,
) -> None:
    models = [f"M({flag}, {n})" for flag in (False, True) for n in (0, 1, 3)]
    assert _alike(_listed(body), *models) == "explicit"
    assert '}", nn.Dense(6))\n' in converted(_listed(body))


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(1, self.n):\n  x = self.layers[i](x)",
        "for i in range(0, self.n, 2):\n  x = self.layers[i](x)",
        "for i in range(self.n - 1):\n  x = self.layers[i + 1](x)",
        "for i in range(self.n - 1):\n  x = self.layers[i](x)",
        "for i in (0, 2):\n  x = self.layers[i](x)",
        "x = sum(self.layers[i](x) for i in range(1, self.n))",
        "last = self.n - 1\nx = self.layers[last](x)",
        "for i in range(self.n):\n  x = self.layers[i % 2](x)",
        "for i in range(2 * self.n):\n  x = self.layers[i // 2](x)",
        "for i in range(2 * self.n):\n  x = self.layers[int(i / 2)](x)",
    ],
)
def test_a_list_of_which_an_index_alone_takes_some_layers_is_left_to_first_calls(body: str) -> None:
    assert _alike(_listed(body), "M(False, 3)", "M(True, 4)") == "explicit"


def test_a_list_that_is_taken_apart_is_left_to_first_calls() -> None:
    body = "head, *rest = self.layers\nfor layer in rest:\n  x = layer(x)"
    assert _alike(_listed(body), "M(False, 1)", "M(True, 3)") == "explicit"


def test_a_list_whose_layers_nobody_follows_is_left_to_their_first_calls() -> None:
    source = _listed("layers = dict(enumerate(self.layers))\nx = layers[0](x)")
    assert 'setattr(self, f"layers_{i}", nn.Dense(6))' in converted(source)
    _alike(source, "M(False, 1)", "M(False, 3)")


@pytest.mark.parametrize("other", ["(1, 2)", "range(2)", "x[0]"])
def test_a_list_beside_a_shorter_one_is_left_to_first_calls(other: str) -> None:
    body = f"for layer, scale in zip(self.layers, {other}):\n  x = scale * layer(x)"
    assert _alike(_listed(body), "M(False, 1)", "M(False, 3)") == "explicit"


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(self.n):\n  x = self.layers[i](x)",
        "for i, layer in enumerate(self.layers):\n  x = self.layers[i](layer(x))",
        "for layer in self.layers:\n  if x.ndim > 3:\n    raise ValueError\n  x = layer(x)",
        "for i, layer in enumerate(self.layers, 1):\n  x = i * layer(x)",
        "x = sum([layer(x) for layer in self.layers])",
        "for i in range(self.n):\n  x = self.layers[i](x)\nfor i in range(2):\n  x = self.layers[i](x)",
    ],
)
def test_a_list_that_a_loop_goes_through_is_built(body: str) -> None:
    assert 'setattr(self, f"layers_{' in converted(_listed(body))


@pytest.mark.parametrize(
    "body",
    [
        "for layer in (self.first, self.second):\n  x = layer(x)\n  if self.flag:\n    break",
        "for _ in range(2):\n  if self.flag:\n    return x\nx = self.second(x)",
    ],
)
def test_a_layer_behind_what_may_leave_is_left_to_its_first_call(body: str) -> None:
    assert "    self.second = nn.Dense(6)\n" in converted(_two(body))
    assert _alike(_two(body), "M(False)", "M(True)") == "explicit"


@pytest.mark.parametrize(
    "body",
    [
        "f = partial(self.second)\nif self.flag:\n  x = f(x)",
        "x = x[..., : self.second.features]\nif self.flag:\n  x = self.second(x)",
        "if self.second and self.flag:\n  x = self.second(x)",
    ],
)
def test_an_attribute_that_is_more_than_called_where_its_layer_is_not_reached_is_refused(
    body: str,
) -> None:
    assert refusal(_two(body)).reason == "a lazy submodule is more than called here"


@pytest.mark.parametrize(
    ("body", "setup"),
    [
        ("layers = [self.second]\nif self.flag:\n  x = layers[0](x)", "pass"),
        ("second = self.second\nif self.flag:\n  x = second(x)", "pass"),
        ("if self.flag:\n  x = self.both[1](x)", "self.both = (self.first, self.second)"),
        ("for f in [f for f in (self.second,) if self.flag]:\n  x = f(x)", "pass"),
        ("x = x + sum([f(x) for f in (self.second,) if self.flag])", "pass"),
    ],
)
def test_an_attribute_that_is_read_where_its_layer_is_not_reached_is_there(
    body: str, setup: str
) -> None:
    _alike(_two(body, setup), "M(False)", "M(True)")


@pytest.mark.parametrize(
    "body",
    [
        "x = (self.second if self.flag else self.first)(x)",
        "if self.flag:\n  second = self.second\n  x = second(x)",
        "x = self.second(x) if self.flag else x",
        "if not self.flag:\n  return x\nfor layer in [self.second]:\n  x = layer(x)",
    ],
)
def test_an_attribute_that_is_read_where_its_layer_is_called_is_built_there(body: str) -> None:
    text = converted(_two(body))
    assert "if self.flag:\n      self.second = nnx.Linear(6, 6, rngs=rngs)" in text


CHOSEN = """\
class M(nn.Module):
  kind: str

  @nn.compact
  def __call__(self, x):
    {choice}
    return norm(epsilon=1e-3)(x)
"""


@pytest.mark.parametrize(
    "choice",
    [
        "norm = nn.LayerNorm if self.kind else lambda epsilon: lambda y: y",
        "norm = partial(nn.LayerNorm) if self.kind else lambda epsilon: lambda y: y",
        "if self.kind == 'a':\n      norm = nn.LayerNorm\n    else:\n      norm = lambda epsilon: nn.relu",
        "norm = nn.LayerNorm if self.kind == 'a' else nn.RMSNorm if self.kind else lambda **_: nn.relu",
    ],
)
def test_a_class_in_one_case_and_a_function_in_another_are_refused(choice: str) -> None:
    assert "norm is a class or a function here" in refusal(CHOSEN.format(choice=choice)).reason


def test_a_function_that_takes_all_that_a_class_does_may_stand_for_it() -> None:
    text = converted(
        CHOSEN.format(choice="norm = nn.LayerNorm if self.kind else lambda **_: nn.relu")
    )
    assert "self.LayerNorm_0 = norm(" in text


ROUNDS = """\
class M(nn.Module):
  n: int
  m: int
  widths: tuple[int, ...]

  def setup(self):
    self.first = nn.Dense(6)
    {setup}

  def __call__(self, x):
    x = self.first(x)
{body}
    return x
"""


def _rounds(body: str, setup: str = "self.second = nn.Dense(6)") -> str:
    return ROUNDS.format(body=textwrap.indent(body, "    "), setup=setup)


@pytest.mark.parametrize(
    ("body", "test"),
    [
        ("for _ in range(self.n):\n  x = self.second(x)", "self.n > 0"),
        ("for i in range(2, self.n):\n  x = self.second(x)", "self.n > 2"),
        ("for i in range(self.n, 0, -1):\n  x = self.second(x)", "self.n > 0"),
        ("for i in range(0, self.n, 2):\n  x = self.second(x)", "self.n > 0"),
        ("for i in reversed(range(1, self.n)):\n  x = self.second(x)", "self.n > 1"),
        ("for _ in self.widths:\n  x = self.second(x)", "len(self.widths) > 0"),
        (
            "for _ in self.widths:\n  for i, _ in enumerate(range(self.n)):\n    x = self.second(x)",
            "len(self.widths) > 0 and self.n > 0",
        ),
        (
            "for _ in range(self.n):\n  x = self.second(x)\nfor _ in range(self.m):\n  x = self.second(x)",
            "self.n > 0 or self.m > 0",
        ),
        ("x = x + sum(self.second(x) for _ in range(self.n))", "self.n > 0"),
    ],
)
def test_a_layer_that_only_a_loop_calls_is_built_if_the_loop_has_a_round(
    body: str, test: str
) -> None:
    text = converted(_rounds(body))
    assert f"if {test}:\n      self.second = nnx.Linear(6, 6, rngs=rngs)\n" in text
    assert "else:" not in text


@pytest.mark.parametrize(
    "body",
    [
        "x = self.second(x)\nfor _ in range(self.n):\n  x = self.second(x)",
        "for _ in range(3):\n  x = self.second(x)",
        "for _ in range(x.shape[0]):\n  x = self.second(x)",
    ],
)
def test_a_layer_that_more_than_a_loop_over_fields_calls_is_built_always(body: str) -> None:
    text = converted(_rounds(body))
    assert "    self.second = nnx.Linear(6, 6, rngs=rngs)" in text
    assert "if " not in text


def test_a_layer_that_only_a_loop_calls_and_that_is_read_outside_is_none_without_a_round() -> None:
    body = "layer = self.second\nfor _ in range(self.n):\n  x = layer(x)"
    text = converted(_rounds(body))
    assert "rngs=rngs)\n    else:\n      self.second = None\n" in text


LAYERS = "self.layers = [nn.Dense(6) for _ in range(self.m)]"


@pytest.mark.parametrize(
    "body",
    [
        "for layer in self.layers:\n  x = layer(x)",
        "for i in range(self.m):\n  x = self.layers[i](x)",
        "for layer, _ in zip(self.layers, range(self.m)):\n  x = layer(x)",
    ],
)
def test_a_list_has_a_layer_for_each_round_of_the_loop_that_goes_through_it(body: str) -> None:
    assert "if " not in converted(_rounds(body, LAYERS))


def test_a_list_that_a_loop_goes_through_in_each_round_is_built_if_there_is_one() -> None:
    body = "for _ in range(self.n):\n  for layer in self.layers:\n    x = layer(x)"
    assert "if self.n > 0:\n      for " in converted(_rounds(body, LAYERS))


@pytest.mark.parametrize(
    ("setup", "call"),
    [
        ("self.second, self.third = nn.Dense(6), nn.Dense(6)", "self.second(self.third(x))"),
        ("self.second, self.third = nn.Dense(6), nn.Dense(6)", "self.second(x)"),
        ("self.both = {1: nn.Dense(6), 2: nn.Dense(6)}", "self.both[1](x)"),
    ],
)
def test_one_of_several_that_a_statement_builds_is_left_to_its_first_call_where_a_loop_may_have_no_round(
    setup: str, call: str
) -> None:
    third = "self.third" if "third" in setup else "self.both[2]"
    body = f"x = {third}(x)\nfor _ in range(self.n):\n  x = {call}"
    model = _rounds(body, setup)
    text = converted(model)
    assert "if " not in text
    assert " nn.Dense(6)" in text
    assert _alike(model, "M(0, 0, ())", "M(2, 0, ())") == "explicit"


READ_BESIDE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class M(nn.Module):
    flag: bool = False

    def setup(self):
        self.first = nn.Dense(4)
        self.second = nn.Dense(4)
        self.third = nn.Dense(4)

    def __call__(self, x, train: bool = False):
        if train:
            x = self.first(x)
        if x.shape[0] > 1 and self.flag:
            for layer in (self.second, self.third):
                if self.flag:
                    continue
                x = layer(x)
        return x


class Outer(nn.Module):
    flag: bool = True

    def setup(self):
        self.m = M(flag=self.flag)

    def __call__(self, x, train: bool = True):
        return self.m(x, train)


def main():
    x = jnp.ones((2, 4))
    for model in (Outer(), Outer(flag=False)):
        variables = model.init(jax.random.key(0), x)
        print(model.apply(variables, x, train=False), jax.tree.map(jnp.shape, variables))
        print(nn.init(lambda m, x: m(x, False), model)(jax.random.key(0), x))


if __name__ == "__main__":
    main()
"""


def test_a_layer_is_left_to_its_first_call_that_a_call_by_default_only_reads() -> None:
    assert printed_alike(READ_BESIDE) == {"m.M": "explicit", "m.Outer": "explicit"}
