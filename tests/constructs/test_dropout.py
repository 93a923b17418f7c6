"""Dropout: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Form
from tests.constructs.convert import refusal, text
from tests.rewrite.projects import LINEN, rewrite_in_form


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.Dropout(0.1)", "nnm.Dropout(0.1, rngs=rngs)"),
        (
            "nn.Dropout(rate=r, broadcast_dims=(1,))",
            "nnm.Dropout(rate=r, broadcast_dims=(1,), rngs=rngs)",
        ),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Dropout()", "without 'rate'"),
        ("nn.Dropout(0.1, rng='x')", "unknown argument 'rng'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


def made(body: str) -> str:
    """The new text of a file whose class becomes explicit."""
    result = rewrite_in_form({"m.py": LINEN + body}, "auto")
    assert {one.form for one in result.classes} == {Form.EXPLICIT}
    (file,) = result.files
    assert file.code is not None
    return file.code


# The calls of one layer in a class, and whether it becomes NNX's own.
CALLS = {
    "inline": ("nn.Dropout(0.1)(x, deterministic=not train)", True),
    "deterministic moves to the call": ("nn.Dropout(0.1, deterministic=not train)(x)", True),
    "fixed": ("nn.Dropout(0.1, deterministic=True)(x)", True),
    "by position": ("nn.Dropout(0.1)(x, not train)", False),
    "with a key": ("nn.Dropout(0.1)(x, deterministic=False, rng=key)", False),
    "more than the text shows": ("nn.Dropout(0.1)(x, **options)", False),
    "in both places": ("nn.Dropout(0.1, deterministic=True)(x, deterministic=True)", False),
    "nobody says it": ("nn.Dropout(0.1)(x)", False),
}


@pytest.mark.parametrize(("call", "is_plain"), CALLS.values(), ids=CALLS)
def test_a_layer_is_plain_nnx_where_its_calls_mean_the_same(call: str, is_plain: bool) -> None:
    text = made(f"""
class M(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False, key=None, options=()):
        return {call}
""")
    assert ("nnx.Dropout(0.1" in text) == is_plain
    assert ("nnm.Dropout(0.1" in text) == (not is_plain)


SETUP = """
class M(nn.Module):
    def setup(self):
        self.drop = nn.Dropout(0.1)

    def __call__(self, x, deterministic: bool = True):
        return self.drop(x, deterministic=deterministic)
"""
OTHERS = {
    "a subclass by keyword": (
        "class Other(M):\n    def more(self, x):\n        return self.drop(x, deterministic=True)\n",
        True,
    ),
    "a subclass by position": (
        "class Other(M):\n    def more(self, x):\n        return self.drop(x, True)\n",
        False,
    ),
    "a layer of another class": (
        "class Other:\n    def more(self, x):\n        return self.drop(x, True)\n",
        True,
    ),
    "who holds the model": ("def more(model, x):\n    return model.drop(x, True)\n", False),
    "a number of a configuration": (
        "class Config:\n    drop: float = 0.1\n\n\nclass Other(nn.Module):\n    config: Config\n\n"
        + "    def __call__(self, x):\n        return x * self.config.drop\n",
        True,
    ),
    "as a value": ("def more(model):\n    return model.drop\n", False),
}


@pytest.mark.parametrize(("other", "is_plain"), OTHERS.values(), ids=OTHERS)
def test_others_may_call_a_layer_of_setup(other: str, is_plain: bool) -> None:
    text = made(f"{SETUP}\n\n{other}")
    assert ("self.drop = nnx.Dropout(0.1, rngs=rngs)" in text) == is_plain
    assert ("self.drop = nnm.Dropout(0.1, rngs=rngs)" in text) == (not is_plain)
