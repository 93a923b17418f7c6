"""What the report says of sizes: every place that builds a layer, and where its size comes from."""

from __future__ import annotations

import pytest

from nnx_migrate.model import RewriteResult
from tests.rewrite.projects import LINEN, USER, caller, rewrite

OPS = LINEN + "def block(x, width):\n    return nn.Dense(width)(nn.Dense(width)(x))\n"
BASE = LINEN + "class Base(nn.Module):\n    def setup(self):\n        self.d = nn.Dense(3)\n"


def told(result: RewriteResult, cls: str) -> list[tuple[str, int, str, str]]:
    """Path, line, value and source of the sizes of a class."""
    found = next(one for one in result.classes if one.name == cls)
    return [(one.path, one.line, one.value, one.source) for one in found.sizes]


def test_a_size_in_an_inherited_method_is_at_the_place_of_the_base_class() -> None:
    user = "from base import Base\n\n\nclass A(Base):\n    def __call__(self, x):\n"
    result = rewrite({"base.py": BASE, "user.py": user + "        return self.d(x)\n"})
    assert told(result, "user.A") == [("base.py", 6, "in_features", "static")]


def test_sizes_in_a_function_that_builds_layers_belong_to_the_classes_that_call_it() -> None:
    result = rewrite({"ops.py": OPS, "user.py": USER + caller("A", "ops.block(x, 4)")})
    places = [("ops.py", 5, "in_features", "static"), ("ops.py", 5, "width", "static")]
    assert sorted(told(result, "user.A")) == places


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("ops.block(x, 4)", "static", id="known"),
        pytest.param("ops.block(x.reshape(x.shape[0], -1), 4)", "argument", id="unknown"),
        pytest.param(
            "(ops.block(x, 4), ops.block(x.reshape(x.shape[0], -1), 4))",
            "argument",
            id="unknown in one of two calls",
        ),
    ],
)
def test_the_size_of_a_function_is_as_well_known_as_its_calls_know_it(
    body: str, expected: str
) -> None:
    ops = LINEN + "def block(x, width, label='a'):\n    return nn.Dense(width, name=label)(x)\n"
    two = body.replace("-1), 4)", "-1), 4, 'b')")
    result = rewrite({"ops.py": ops, "user.py": USER + caller("A", two)})
    assert told(result, "user.A") == [("ops.py", 5, "in_features", expected)]


@pytest.mark.parametrize(
    ("start", "expected"),
    [("nn.Dense(2)(x)", "static"), ("x.reshape(x.shape[0], -1)", "argument")],
)
def test_a_size_that_a_loop_carries_comes_from_where_the_loop_starts(
    start: str, expected: str
) -> None:
    body = f"        y = {start}\n        for w in self.widths:\n            y = nn.Dense(w)(y)\n"
    model = (
        "class A(nn.Module):\n    widths: tuple[int, ...]\n\n    @nn.compact\n"
        f"    def __call__(self, x):\n{body}        return y\n"
    )
    sizes = told(rewrite({"user.py": LINEN + model}), "user.A")
    assert [one[2:] for one in sizes if one[2] == "y_features"] == [("y_features", expected)]


@pytest.mark.parametrize(
    ("second", "worst"), [("dense(3)(x)", "static"), ("dense(3)(x[..., :n])", "argument")]
)
def test_a_size_is_told_where_a_function_is_asked_to_build_and_where_it_builds(
    second: str, worst: str
) -> None:
    body = (
        "def dense(n):\n"
        "    return nn.Dense(n)\n\n\n"
        "class A(nn.Module):\n"
        "    @nn.compact\n"
        "    def __call__(self, x, n=2):\n"
        "        x = dense(4)(x)\n"
        f"        return {second}\n"
    )
    found = {line: source for _, line, _, source in told(rewrite({"m.py": LINEN + body}), "m.A")}
    assert found == {11: "static", 12: worst, 5: worst}
