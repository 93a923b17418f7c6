"""Class methods that build their class are told: they do not pass sizes and rngs."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Confidence
from nnx_migrate.rewrite.classes import ConvertedClass
from tests.rewrite.classes.support import convert

MODEL = """\
class M(nn.Module):
  features: int

  {decorator}
  def make({parameters}):
    return {made}

  @nn.compact
  def __call__(self, x):
    return nn.Dense(self.features)(x)
"""


def stale(decorator: str, parameters: str, made: str) -> list[str]:
    found = convert(MODEL.format(decorator=decorator, parameters=parameters, made=made))["M"]
    assert isinstance(found, ConvertedClass), found.reason
    assert (found.confidence is Confidence.REVIEW) == bool(found.stale)
    return [text for _, text in found.stale]


@pytest.mark.parametrize(
    ("parameters", "made", "expected"),
    [
        ("cls, n", "cls(2 * n)", "pass in_features=, rngs= on from the callers of make()"),
        ("cls, n, **kw", "cls(n, **kw)", "callers of make() pass in_features=, rngs="),
        ("cls, n, **kw", "cls(n, **{})", "pass in_features=, rngs= on from the callers of make()"),
        ("kind, n", "kind(n)", "pass in_features=, rngs= on from the callers of make()"),
    ],
)
def test_a_class_method_that_builds_its_class_is_told(
    parameters: str, made: str, expected: str
) -> None:
    assert stale("@classmethod", parameters, made) == [f"model.M is an NNX module now: {expected}"]


def test_every_such_call_is_told() -> None:
    assert len(stale("@classmethod", "cls, n", "cls(n) if n else cls(1)")) == 2


@pytest.mark.parametrize(
    ("decorator", "parameters", "made"),
    [
        ("@classmethod", "cls, n", "cls.__name__ * n"),
        ("@classmethod", "cls, make", "make(cls)"),
        ("@staticmethod", "cls", "cls(1)"),
        ("@property", "self", "self.features"),
    ],
)
def test_other_methods_are_not(decorator: str, parameters: str, made: str) -> None:
    assert stale(decorator, parameters, made) == []
