"""Attributes of setup that follow a parameter or variable, as Linen computes them at every call."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.rewrite.classes.support import converted, loaded, refusal

SETUP = """\
class M(nn.Module):
  features: int = 3

  def setup(self):
{}

  def __call__(self, x):
    return x * {}
"""
WEIGHT = 'self.param("w", nn.initializers.ones, (3,))'


def model_source(setup: str, read: str = "self.y") -> str:
    lines = "\n".join(f"    {line}" for line in setup.splitlines())
    return SETUP.format(lines.replace("WEIGHT", WEIGHT), read)


FOLLOWING = {
    "a local parameter in an expression": "w = WEIGHT\nself.y = w * 2",
    "a parameter inside the expression": "self.y = WEIGHT * 2",
    "a parameter in a local expression": "w = 2 * WEIGHT\nself.y = w",
    "an attribute that holds one": "self.w = WEIGHT\nself.y = self.w * 2",
    "a function of it": "w = WEIGHT\nself.y = jnp.add(w, w)",
    "a chain of attributes": "self.w = WEIGHT\nself.v = self.w + 0\nself.y = 2 * self.v",
    "with a local that is bound twice": ("eye = jnp.ones(3)\neye = eye + 1\nself.y = eye * WEIGHT"),
    "with locals bound together": "a, b = 2, 1\nself.y = a * b * WEIGHT",
    "one step after another": "self.y = WEIGHT * 4\nself.y = self.y / 2",
    "a step that reads the one before twice": "self.y = 1 * WEIGHT\nself.y = self.y + self.y",
    "a method that reads it": "self.w = WEIGHT\nself.y = self.twice()",
}


@pytest.mark.parametrize("setup", FOLLOWING.values(), ids=FOLLOWING.keys())
def test_an_attribute_computed_from_a_parameter_follows_it(setup: str) -> None:
    source = model_source(setup)
    if "twice" in setup:
        source += "\n  def twice(self):\n    return self.w * 2\n"
    text = converted(source)
    with loaded(text, "followed") as module:
        model = module.M(rngs=nnx.Rngs(0))
        model.w[...] = jnp.array([1.0, 5.0, 7.0])
        assert model(jnp.ones(3)).tolist() == [2.0, 10.0, 14.0]
        gradient = nnx.grad(lambda m: m(jnp.ones(3)).sum())(model)
        assert np.asarray(gradient["w"][...]).tolist() == [2.0, 2.0, 2.0]


def test_a_computed_attribute_named_like_its_parameter_is_read_under_another_name() -> None:
    text = converted(model_source("self.w = WEIGHT + jnp.arange(3)", "self.w"))
    assert "    self.w = nnx.Param(nnx.initializers.ones(rngs.params(), (3,)))\n" in text
    assert "  def _w(self):\n    return self.w[...] + jnp.arange(3)\n" in text
    assert "return x * self._w\n" in text


@pytest.mark.parametrize(("attribute", "read"), [("w", "self.w[...]"), ("y", "self.w[...]")])
def test_an_attribute_that_a_local_parameter_goes_to_is_that_parameter(
    attribute: str, read: str
) -> None:
    text = converted(model_source(f"w = WEIGHT\nself.{attribute} = w", f"self.{attribute}"))
    assert f"return x * {read}\n" in text
    assert text.count("self.w = ") == 1
    assert "self.y = " not in text


def test_a_value_of_a_variable_is_read_where_the_attribute_is() -> None:
    text = converted(
        model_source(
            'self.v = self.variable("stats", "v", jnp.ones, (3,))\nself.y = self.v.value + 1'
        )
    )
    assert "  def y(self):\n    return self.v[...] + 1\n" in text


def test_what_only_the_shape_of_a_parameter_decides_stays_an_attribute() -> None:
    text = converted(model_source("self.w = WEIGHT\nself.y = self.w.shape[0]"))
    assert "self.y = self.w[...].shape[0]\n" in text


def test_none_in_place_of_a_parameter_stays() -> None:
    text = converted(
        model_source("if self.features:\n  self.w = WEIGHT\nelse:\n  self.w = None", "self.w")
    )
    assert "self.w = nnx.data(None)\n" in text
    assert "return x * nnm.read(self.w)" in text


def test_a_list_filled_in_place_is_not_written_as_the_empty_list() -> None:
    text = converted(model_source("a = []\na.append(1.0)\nself.y = jnp.array(a)"))
    with loaded(text, "filled") as module:
        assert module.M(rngs=nnx.Rngs(0))(jnp.full(1, 3.0)).tolist() == [3.0]


REFUSED = {
    "a tuple of attributes": ("self.w = WEIGHT\nself.a, self.y = jnp.split(self.w, 2)", "keeps"),
    "an attribute changed in place": ("self.y = 1\nself.w = WEIGHT\nself.y += self.w", "follows"),
    "setattr": ('self.w = WEIGHT\nsetattr(self, "y", self.w * 2)', "keeps"),
    "an attribute with two values": (
        "self.w = WEIGHT\nif self.features:\n  self.y = self.w\nelse:\n  self.y = 2 * self.w",
        "follows",
    ),
    "a step after another attribute": (
        "self.w = WEIGHT\nself.y = 2 * self.w\nself.b = self.y\nself.y = self.y * 2",
        "follows",
    ),
    "a step in place of the parameter": ("self.w = WEIGHT\nself.w = self.w * 2", "follows"),
    "a parameter made under a condition": (
        "self.y = 2 * WEIGHT if self.features else 3",
        "inside a larger expression",
    ),
    "a local list": ("self.w = WEIGHT\na = []\na.append(self.w)\nself.y = a", "follows"),
    "a parameter's name in use": ("w = WEIGHT\nself.w = 3\nself.y = 1", "'w' names self.w"),
}


@pytest.mark.parametrize(("setup", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_property_can_compute_is_refused(setup: str, reason: str) -> None:
    assert reason in refusal(model_source(setup)).reason


GIVEN = {
    "in setup": """
  def setup(self):
    self.w = self.param("w", nn.initializers.ones, (3,))
    self.inner = Inner({})

  def __call__(self, x):
    return self.inner(x)
""",
    "in a compact method": """
  @nn.compact
  def __call__(self, x):
    w = self.param("w", nn.initializers.ones, (3,))
    return Inner({})(x)
""",
}
INNER = """
class Inner(nn.Module):
  scale: Any

  def __call__(self, x):
    return x * self.scale


class Outer(nn.Module):"""


@pytest.mark.parametrize("body", GIVEN.values(), ids=GIVEN.keys())
def test_a_parameter_as_a_field_of_a_submodule_is_refused(body: str) -> None:
    value = "self.w" if "setup" in body else "w"
    assert "gets a parameter" in refusal(INNER + body.format(value)).reason


@pytest.mark.parametrize("body", GIVEN.values(), ids=GIVEN.keys())
def test_the_size_of_a_parameter_may_be_a_field_of_a_submodule(body: str) -> None:
    value = "self.w.shape[0]" if "setup" in body else "w.shape[0]"
    assert f"Inner({value.replace('w.', 'w[...].') if 'setup' in body else value}" in converted(
        INNER + body.format(value)
    )


def test_the_property_gives_linens_output() -> None:
    source = model_source("eye = jnp.ones(3)\neye = eye * 4\nself.w = WEIGHT * 3 + eye", "self.w")
    x, params = jnp.arange(3.0), {"params": {"w": jnp.array([2.0, 3.0, 4.0])}}
    with loaded(source, "linen_side") as before, loaded(converted(source), "nnx_side") as after:
        model = after.M(rngs=nnx.Rngs(0))
        model.w[...] = params["params"]["w"]
        assert model(x).tolist() == before.M().apply(params, x).tolist() == [0.0, 13.0, 32.0]
