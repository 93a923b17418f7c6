"""Functions and transformed methods that reach the variables of the module in ways NNX has not."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import converted, refusal

SWITCH = """\
class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    def count({parameter}, x):
      {use}
      return x
    return nn.cond(True, count, count, self, x)
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
    assert "nnm.cond(True, count, count, self, x)" in text


LAZY = """\
class M(nn.Module):
{decorator}  @nn.compact
  def __call__(self, x):
    v = self.variable('state', 'v', jnp.zeros, x.shape)
    v.value += x
    return v.value
"""


def test_a_variable_that_the_call_shapes_is_refused_in_a_transformed_method() -> None:
    found = refusal(LAZY.format(decorator="  @nn.jit\n"))
    assert found.reason == (
        "the shape of this variable is only known in the call, which flax.linen.jit transforms"
    )


def test_a_variable_that_the_call_shapes_is_made_by_a_plain_call() -> None:
    text = converted(LAZY.format(decorator=""))
    assert "nnm.lazy_variable(self, 'state', 'v', jnp.zeros, x.shape)" in textwrap.dedent(text)
