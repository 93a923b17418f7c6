"""Linen's functional methods on the module itself."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome, Tally
from tests.rewrite.classes.support import converted, refusal
from tests.rewrite.projects import LINEN, only, rewrite

CLASS = """\
class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x)

"""


def with_method(body: str, head: str = "def helper(self, params, x, key):") -> str:
    return f"{CLASS}    {head}\n        {body}\n"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('self.apply({"params": params}, x)', 'nnm.apply(self, {"params": params}, x)'),
        ("self.apply(params, x, mutable=['a'])", "nnm.apply(self, params, x, mutable=['a'])"),
        ("lambda y: self.apply(params, y)", "lambda y: nnm.apply(self, params, y)"),
        ("jax.jit(self.apply)", "jax.jit(nnm.apply_fn(self))"),
    ],
)
def test_apply_in_a_helper_becomes_the_functional_one(written: str, expected: str) -> None:
    assert f"return {expected}" in converted(with_method(f"return {written}"))


@pytest.mark.parametrize("method", ["init", "init_with_output", "lazy_init", "tabulate", "unbind"])
def test_a_method_that_needs_a_new_module_stays_as_a_refused_call_site(method: str) -> None:
    written = f"self.{method}(key, x)"
    result = rewrite({"m.py": LINEN + with_method(f"return {written}")})
    assert [one.outcome for one in result.classes] == [Outcome.REWRITTEN]
    assert f"return {written}" in (only(result) or "")
    assert result.call_sites == Tally(1, refused=1)
    refused = [one for one in result.findings if one.outcome is Outcome.REFUSED]
    assert [(one.rule, one.line) for one in refused] == [("call_site", 10)]
    assert f"self.{method} stays and raises AttributeError" in refused[0].message


def test_a_rewritten_apply_counts_as_a_rewritten_call_site() -> None:
    result = rewrite({"m.py": LINEN + with_method("return self.apply(params, x)")})
    assert result.call_sites == Tally(1, rewritten=1)


@pytest.mark.parametrize(
    "call",
    [
        "self.apply(params, x, capture_intermediates=True)",
        "self.apply(*params)",
        "self.apply(params, **x)",
    ],
)
def test_an_apply_whose_arguments_are_not_plain_is_refused(call: str) -> None:
    assert refusal(with_method(f"return {call}")).reason == "self.apply has no NNX counterpart"


@pytest.mark.parametrize("name", ["apply", "init"])
def test_what_the_forward_pass_reaches_is_refused_with_the_class(name: str) -> None:
    body = f"""\
class M(nn.Module):
    def setup(self):
        self.d = nn.Dense(2)

    def __call__(self, x):
        return self.helper(x)

    def helper(self, x):
        return self.{name}(x, x)
"""
    assert refusal(body).reason == f"self.{name} has no NNX counterpart"


def test_a_method_that_the_class_defines_itself_is_its_own() -> None:
    body = with_method("return self.init(x)") + "\n    def init(self, x):\n        return x\n"
    assert "return self.init(x)" in converted(body)
