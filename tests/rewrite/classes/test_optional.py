"""Attributes of setup that hold None where nothing is built."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from tests.rewrite.classes.support import converted, loaded, refusal


def module(setup: str, call: str) -> str:
    lines = "".join(f"        {line}\n" for line in setup.splitlines())
    return (
        "class M(nn.Module):\n    n: int = 3\n    flag: bool = True\n\n"
        f"    def setup(self):\n{lines}\n    def __call__(self, x):\n        return {call}\n"
    )


FIRST = "self.a = None\nif self.flag:\n    self.a = {}"
ELSE = "if self.flag:\n    self.a = {}\nelse:\n    self.a = None"
PARAM = 'self.param("a", nn.initializers.ones, (self.n,))'


@pytest.mark.parametrize("setup", [FIRST, ELSE])
def test_a_submodule_may_follow_none(setup: str) -> None:
    text = converted(module(setup.format("nn.Dense(self.n)"), "x if self.a is None else self.a(x)"))
    assert "self.a = nnx.data(None)" in text
    with loaded(text, "optional_layer") as made:
        streams = made.nnx.Rngs(0)
        assert made.M(in_features=3, rngs=streams)(jnp.ones((1, 3))).shape == (1, 3)
        assert made.M(flag=False, in_features=2, rngs=streams)(jnp.ones((1, 2))).shape == (1, 2)


INSIDE = "self.a = {} if self.flag else None"
ASKED = "x if self.a is None else x + self.a"


@pytest.mark.parametrize("setup", [FIRST, ELSE, INSIDE])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ASKED, "x if self.a is None else x + self.a[...]"),
        (
            "x + self.a if self.a is not None else x",
            "x + self.a[...] if self.a is not None else x",
        ),
        ("x if not self.flag else x + self.a", "x if not self.flag else x + nnm.read(self.a)"),
        (
            "x if not self.flag or self.a is None else x + self.a",
            "x if not self.flag or self.a is None else x + nnm.read(self.a)",
        ),
    ],
)
def test_a_parameter_that_may_be_none_is_read_as_such(setup: str, call: str, expected: str) -> None:
    text = converted(module(setup.format(PARAM), call))
    assert expected in text
    with loaded(text, "optional_param") as made:
        streams = made.nnx.Rngs(0)
        assert float(made.M(rngs=streams)(jnp.zeros(3)).sum()) == 3.0
        assert float(made.M(flag=False, rngs=streams)(jnp.zeros(3)).sum()) == 0.0


def test_a_list_may_follow_none() -> None:
    setup = FIRST.format("[nn.Dense(self.n), nn.Dense(self.n)]")
    text = converted(module(setup, "x if self.a is None else self.a[1](self.a[0](x))"))
    assert 'nnm.set_submodules(self, "a", None)' in text
    with loaded(text, "optional_list") as made:
        streams = made.nnx.Rngs(0)
        assert made.M(flag=False, in_features=2, rngs=streams).a is None
        assert len(made.M(in_features=3, rngs=streams).a) == 2


def test_a_function_in_the_other_branch_stays() -> None:
    setup = "if self.flag:\n    self.a = nn.Dense(self.n)\nelse:\n    self.a = nn.relu"
    assert "self.a = nnx.relu" in converted(module(setup, "self.a(x)"))


@pytest.mark.parametrize(
    "setup",
    [
        FIRST.replace("None", "nn.relu").format("nn.Dense(self.n)"),
        "self.a = lambda y: y\nif self.flag:\n    n = self.n\n    self.a = nn.Dense(n)",
        "self.a = nn.relu\nif not self.flag:\n    pass\nelse:\n    self.a = nn.Dense(self.n)",
    ],
)
def test_a_submodule_may_follow_a_function(setup: str) -> None:
    text = converted(module(setup, "self.a(x)"))
    assert "    self.a = nnx.data(nnx.Linear(in_features, " in text
    with loaded(text, "optional_function") as made:
        streams = made.nnx.Rngs(0)
        whole = made.M(in_features=3, rngs=streams)
        assert whole(jnp.ones((1, 3))).shape == (1, 3)
        assert len(made.nnx.to_flat_state(made.nnx.state(whole))) == 2
        left = made.M(flag=False, in_features=2, rngs=streams)
        assert made.nnx.jit(lambda m, x: m(x))(left, jnp.ones((1, 2))).tolist() == [[1.0, 1.0]]
        assert not made.nnx.to_flat_state(made.nnx.state(left))


@pytest.mark.parametrize(
    "setup",
    [
        "if self.flag:\n    self.a = nn.Dense(self.n)\nif self.n:\n    self.a = nn.relu",
        "self.a = nn.relu\nif self.flag:\n    self.a = nn.Dense(2) if self.n else nn.Dense(3)",
        "self.a = nn.relu\nif self.flag:\n    self.a = [nn.Dense(self.n)]",
        f"self.a = 0.0\nif self.flag:\n    self.a = {PARAM}",
        f"if self.flag:\n    self.a = {PARAM}\nelse:\n    self.a = 0.0",
        'self.a = None\nif self.flag:\n    self.a = nn.Dense(self.n, name="b")',
    ],
)
def test_what_replaces_something_else_than_none_is_refused(setup: str) -> None:
    call = "x + self.a" if "param" in setup else "self.a(x)"
    found = refusal(module(setup, call))
    assert found.reason == "self.a holds what is built in one place and something else here"


NAMED = PARAM.replace('"a"', '"b"')


@pytest.mark.parametrize("setup", [INSIDE.format(NAMED), f"self.a = {PARAM} if self.flag else 0.0"])
def test_another_name_or_another_value_than_none_is_refused(setup: str) -> None:
    assert refusal(module(setup, ASKED)).rule == "setup"


def test_two_parameters_of_one_attribute_have_one_name() -> None:
    both = f"self.a = {PARAM} if self.flag else {PARAM.replace('ones', 'zeros')}"
    assert "x + self.a[...]" in converted(module(both, "x + self.a"))
    other = f"self.a = {PARAM} if self.flag else {NAMED}"
    assert "inside a larger expression" in refusal(module(other, "x + self.a")).reason
