"""Code that asks for NNX modules, which rewritten Linen modules are."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Finding, Outcome
from tests.rewrite.projects import rewrite_in_form

CODE = """\
import flax.linen as nn
from flax import nnx


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


def run(model, x):
    BODY
"""


def findings(body: str, form: str = "auto", code: str = CODE) -> list[Finding]:
    found = rewrite_in_form({"m.py": code.replace("BODY", body)}, form).findings
    return [one for one in found if one.outcome is Outcome.REFUSED]


@pytest.mark.parametrize("form", ["auto", "lazy"])
@pytest.mark.parametrize(
    ("body", "column"),
    [
        ("if isinstance(model, nnx.Module):\n        return model(x)", 8),
        ("return isinstance(model, (nnx.Module, int))", 12),
        ("return isinstance(model, nnx.Module | int)", 12),
        ("return issubclass(model, nnx.Module) or isinstance(model, nn.Module)", 12),
        ("return isinstance(x, nn.Module) or isinstance(model, nnx.Module)", 40),
    ],
)
def test_it_is_said_at_the_question(body: str, column: int, form: str) -> None:
    (found,) = findings(body, form)
    assert (found.path, found.line, found.column) == ("m.py", 12, column)
    assert "ask before it for Linen's own" in found.message


@pytest.mark.parametrize(
    "body",
    [
        "return isinstance(model, nn.Module) or isinstance(model, nnx.Module)",
        "return isinstance(model, nnx.Linear)",
        "return isinstance(model, nn.Module)",
        "return isinstance(model, (nn.Module, nnx.Module))",
    ],
)
def test_where_linen_is_asked_for_first_it_is_not(body: str) -> None:
    assert not findings(body)


def test_a_project_without_linen_classes_may_ask() -> None:
    code = "from flax import nnx\n\n\ndef run(model):\n    return isinstance(model, nnx.Module)\n"
    assert not findings("", code=code)
