"""One size out of several calls of one submodule."""

from __future__ import annotations

import textwrap

import pytest

from tests.sizes.inference import LAZY, arguments, in_features, problems, sites, sizes_of


def model(*lines: str, fields: str = "flag: bool", arguments: str = "x, y") -> str:
    """A class with one layer ``d`` that its call uses as ``lines`` say."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    declared = textwrap.indent(fields.replace(";", "\n"), " " * 4)
    return (
        f"class Model(nn.Module):\n{declared}\n"
        "    def setup(self):\n        self.d = nn.Dense(3)\n"
        f"    def __call__(self, {arguments}):\n{body}\n"
    )


CHOICE = "x_features if self.flag else y_features"
FLAT = "x.reshape(x.shape[0], -1)"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            model("if self.flag:", "    return self.d(x)", "else:", "    return self.d(y)"),
            CHOICE,
            id="one of two branches over a field",
        ),
        pytest.param(
            model("if self.flag:", "    return self.d(x)", "return self.d(y)"),
            CHOICE,
            id="a branch that returns",
        ),
        pytest.param(
            model(
                "if self.n == 1:",
                "    return self.d(x)",
                "elif self.n == 2:",
                "    return self.d(y)",
                "return self.d(jnp.concatenate([x, y], axis=-1))",
                fields="n: int",
            ),
            "x_features if self.n == 1 else y_features if not self.n == 1 and self.n == 2 else"
            " x_features + y_features",
            id="one of three branches",
        ),
        pytest.param(
            model("if self.flag:", "    x = self.d(y)", "return self.d(x)"),
            "3 if self.flag else in_features",
            id="a call that every instance makes, of a size that another one changes",
        ),
        pytest.param(
            model("a = self.d(y)", "if self.flag:", "    a = self.d(x)", "return a"),
            "y_features",
            id="the call that every instance makes tells",
        ),
        pytest.param(
            model("if self.flag:", f"    return self.d({FLAT})", "return self.d(y)"),
            "d_in_features",
            id="a size nobody knows in one branch",
        ),
        pytest.param(
            model("if self.flag:", f"    self.d({FLAT})", "return self.d(y)"),
            "y_features",
            id="a size nobody knows beside a call that every instance makes",
        ),
        pytest.param(
            model("if train:", "    return self.d(x)", "return self.d(y)", arguments="x, y, train"),
            "d_in_features",
            id="branches of the call that disagree",
        ),
    ],
)
def test_the_size_is_what_every_call_of_an_instance_has(source: str, expected: str) -> None:
    result = sizes_of(source)
    assert problems(result) == []
    assert in_features(result) == [expected]


def test_a_layer_that_rounds_of_a_loop_use_otherwise_is_lazy() -> None:
    source = (
        "class Model(nn.Module):\n    n: int\n"
        "    def setup(self):\n        self.layers = [nn.Dense(3) for _ in range(self.n)]\n"
        "    def __call__(self, x, y):\n"
        "        for i, layer in enumerate(self.layers):\n"
        "            x = layer(x) if i == 0 else layer(y)\n"
        "        return x\n"
    )
    assert in_features(sizes_of(source)) == [LAZY]


INNER = (
    "class Inner(nn.Module):\n"
    "    def setup(self):\n        self.q = nn.Dense(3)\n        self.k = nn.Dense(3)\n"
    "    def __call__(self, x, context=None):\n"
    "        context = x if context is None else context\n"
    "        return self.q(x) + self.k(context)\n\n\n"
)


def test_sizes_below_a_submodule_follow_the_branches_that_call_it() -> None:
    lines = ("if self.flag:", "    return self.d(x, y)", "return self.d(x)")
    source = INNER + model(*lines).replace("nn.Dense(3)", "Inner()")
    result = sizes_of(source)
    (found,) = sites(result).values()
    assert found == {
        "x_features": "x_features",
        "context_features": "y_features if self.flag else None",
    }
    assert arguments(result) == ["x_features", "y_features"]
