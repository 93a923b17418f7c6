"""Fields that a factory fills, read outside of their class."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.test_forms import auto, reason, said

CLASS = (
    f"import dataclasses\n{LINEN}class A(nn.Module):\n"
    "    sizes: list = dataclasses.field(default_factory=lambda: [3, 2])\n\n"
    "    @nn.compact\n"
    "    def __call__(self, x):\n"
    "        return nn.Dense(len(self.sizes))(x)\n\n\n"
)


@pytest.mark.parametrize("code", ["len(A().sizes)", "[one for one in model.sizes]"])
def test_the_class_is_lazy(code: str) -> None:
    result = auto({"m.py": f"{CLASS}def read(model):\n    return {code}\n"})
    assert said(result) == {"m.A": "lazy"}
    assert "which a factory fills, is read here" in reason(result, "m.A")


def test_it_is_explicit_where_its_own_code_alone_reads_the_field() -> None:
    other = "class Other:\n    def __init__(self):\n        self.sizes = []\n"
    assert said(auto({"m.py": CLASS + other})) == {"m.A": "explicit"}


def test_it_is_explicit_where_the_factory_makes_a_plain_default() -> None:
    text = CLASS.replace("[3, 2]", "(3, 2)").replace(": list", ": tuple")
    assert said(auto({"m.py": f"{text}def read(model):\n    return model.sizes\n"})) == {
        "m.A": "explicit"
    }
