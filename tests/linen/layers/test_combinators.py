"""Sequential."""

from __future__ import annotations

import pytest

from tests.linen.layers.comparison import assert_same_error, floats, pair

SOURCE = """
class Pairs(Module):
    @compact
    def __call__(self, x, y=1.0):
        return linear.Dense(3)(x), y

class Named(Module):
    @compact
    def __call__(self, x, y=1.0):
        return {"x": linear.Dense(3)(x), "y": y}

class Setup(Module):
    def setup(self):
        self.layers = combinators.Sequential([linear.Dense(3), linear.Dense(2)])
    def __call__(self, x):
        return self.layers(x)
"""


@pytest.mark.parametrize(
    "expression",
    [
        "combinators.Sequential([linear.Dense(3), activation.relu, linear.Dense(2)])",
        "combinators.Sequential((linear.Dense(3),))",
        "combinators.Sequential([Pairs(), Pairs()])",
        "combinators.Sequential([Named(), Named()])",
        "Setup()",
    ],
)
def test_a_chain_is_the_same_program(expression):
    pair(expression, floats(2, 4), source=SOURCE).check_programs()


def test_a_function_of_the_chain_may_build_modules():
    found = pair("combinators.Sequential([lambda x: linear.Dense(x.shape[-1])(x)])", floats(2, 4))
    found.check_numbers()


def test_layers_are_named_by_their_position():
    expression = "combinators.Sequential([linear.Dense(3), activation.relu, linear.Dense(2)])"
    variables, _ = pair(expression, floats(2, 4)).check_numbers()
    assert sorted(variables["params"]) == ["layers_0", "layers_2"]


@pytest.mark.parametrize(
    "expression",
    [
        "combinators.Sequential(activation.relu)",
        "combinators.Sequential([]).init(jax.random.key(0), jnp.ones((2, 4)))",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    assert_same_error(expression)
