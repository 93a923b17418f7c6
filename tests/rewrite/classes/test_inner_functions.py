"""Functions and transformed methods that reach the variables of the module in ways NNX has not."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import converted, refusal
from tests.rewrite.running import printed_alike, refused

SWITCH = """\
class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    def count({parameter}, x):
      {use}
      return x
    return count(self, x)
"""


@pytest.mark.parametrize(
    "use",
    [
        "mdl.variable('state', 'n', lambda: 0).value += 1",
        "scale = mdl.param('scale', nn.initializers.ones, (1,))",
        "key = mdl.make_rng('noise')",
        "mdl.sow('intermediates', 'x', x)",
    ],
)
def test_a_function_that_uses_the_module_under_its_own_name_is_refused(use: str) -> None:
    found = refusal(SWITCH.format(parameter="mdl", use=use))
    assert found.reason.startswith("a function inside __call__ calls mdl.")
    assert found.recipe


def test_a_function_that_only_calls_methods_of_what_it_is_given_stays() -> None:
    text = converted(SWITCH.format(parameter="mdl", use="x = mdl.act(x)"))
    assert "return count(self, x)" in text


LAZY = """\
class M(nn.Module):
{decorator}  @nn.compact
  def __call__(self, x):
    v = self.variable('state', 'v', jnp.zeros, x.shape)
    v.value += x
    return v.value
"""


def test_a_variable_that_the_call_shapes_is_refused_in_a_transformed_method() -> None:
    found = refusal(LAZY.format(decorator="  @nn.remat\n"))
    assert found.reason == (
        "the shape of this variable is only known in the call, which flax.linen.remat transforms"
    )


def test_a_variable_that_the_call_shapes_is_made_by_a_plain_call() -> None:
    text = converted(LAZY.format(decorator=""))
    assert "nnm.lazy_variable(self, 'state', 'v', jnp.zeros, x.shape)" in textwrap.dedent(text)


OUTSIDE = """\
def inner(mdl, x):
  def deeper(m):
    {use}
    return x
  return deeper(mdl)

class Utils:
  @staticmethod
  def run(mdl, x):
    return inner(mdl, x)

class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    layer = nn.Dense(3)
    w = self.param('w', nn.initializers.ones, (3,))
    return {call}
"""
USES = {
    "param": "x = x * m.param('w', nn.initializers.ones, (3,))",
    "variable": "m.variable('state', 'n', jnp.zeros, ())",
    "make_rng": "x = x + jax.random.normal(m.make_rng('noise'), x.shape)",
    "sow": "sow = m.sow; sow('intermediates', 'x', x)",
    "perturb": "x = m.perturb('p', x)",
    "put_variable": "m.put_variable('state', 'n', x)",
    "get_variable": "x = x + m.get_variable('params', 'w')",
    "is_initializing": "x = x if m.is_initializing() else -x",
    "is_mutable_collection": "x = x if m.is_mutable_collection('params') else -x",
    "variables": "x = x + m.variables['params']['w']",
    "path": "x = x * len(m.path)",
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize(
    "call",
    [
        "inner(self, layer(x))",
        "Utils.run(self, layer(x)) + w",
    ],
)
def test_a_function_outside_that_uses_what_only_linen_modules_have_is_refused(
    call: str, name: str
) -> None:
    found = refusal(OUTSIDE.format(use=USES[name], call=call))
    assert found.reason.startswith("a function outside the class ")
    assert f"self.{name} for it" in found.reason


def test_a_function_that_builds_layers_and_sows_is_refused() -> None:
    source = """
import flax.linen as nn

def block(x, mdl):
  y = nn.Dense(3)(x)
  mdl.sow('intermediates', 'y', y)
  return y

class Model(nn.Module):
  @nn.compact
  def __call__(self, x):
    layer = nn.Dense(4)
    return block(layer(x), layer)
"""
    assert "self.sow for it" in refused(source)


def test_an_attribute_of_the_users_own_may_have_a_name_of_linens() -> None:
    source = """
    def scaled(mdl, x):
      return x * mdl.path

    class M(nn.Module):
      path: float

      @nn.compact
      def __call__(self, x):
        return scaled(self, nn.Dense(3)(x))
    """
    assert "scaled(self, self.Dense_0(x))" in converted(source)


HANDED = """
import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    width: int = 3

    {helper}

    @nn.compact
    def __call__(self, x):
        {body}


def main():
    variables = Model().init(jax.random.key(0), jnp.ones((2, 3)))
    for path, leaf in jax.tree_util.tree_flatten_with_path(variables)[0]:
        print(jax.tree_util.keystr(path), float(leaf.sum()).hex())
    print(float(Model().apply(variables, jnp.ones((2, 3))).sum()).hex())


if __name__ == "__main__":
    main()
"""
SCALE = 'x * {}.param("scale", nn.initializers.normal(1.0), (1, x.shape[-1]))'


@pytest.mark.parametrize(
    ("helper", "body", "form"),
    [
        (f"def scaled(self, mdl, x): return {SCALE.format('mdl')}", "self.scaled(self, x)", "lazy"),
        (
            f"def scaled(self, x, owner): return {SCALE.format('owner')}",
            "self.scaled(x, owner=self)",
            "lazy",
        ),
        ("", f"(me := self) and {SCALE.format('me')}", "lazy"),
        (
            "def wide(self, mdl, x): return x * mdl.width",
            "nn.Dense(2)(self.wide(self, x))",
            "explicit",
        ),
        ("", SCALE.format("self"), "explicit"),
    ],
)
def test_variables_of_the_module_under_another_name_keep_it_lazy(
    helper: str, body: str, form: str
) -> None:
    source = HANDED.format(helper=helper, body=f"return {body}")
    assert printed_alike(source) == {"m.Model": form}


def test_a_local_that_is_the_module_makes_no_variables() -> None:
    source = HANDED.format(helper="", body=f"me = self\n        return {SCALE.format('me')}")
    assert printed_alike(source) == {"m.Model": "lazy"}


@pytest.mark.parametrize(
    "make",
    [
        "def conv(n):\n      return nn.Conv(n, (2,))",
        "conv = lambda n: nn.Conv(n, (2,))",
    ],
)
def test_a_function_of_setup_that_builds_layers_takes_their_sizes(make: str) -> None:
    source = (
        "class M(nn.Module):\n  width: int = 3\n\n  def setup(self):\n"
        f"    {make}\n    self.a = conv(self.width)\n    self.b = conv(4)\n\n"
        "  def __call__(self, x):\n    return self.b(self.a(x))\n"
    )
    text = converted(source)
    assert "self.a = conv(self.width, in_features=in_features, rngs=rngs)" in text
    assert "self.b = conv(4, in_features=self.width, rngs=rngs)" in text
