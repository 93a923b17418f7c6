"""What converts but wants a look: shared paths, state that Linen's init makes or changes."""

from __future__ import annotations

import textwrap

import pytest

from nnx_migrate.model import Confidence
from nnx_migrate.rewrite.classes import ConvertedClass
from tests.rewrite.classes.support import convert


def notes(body: str) -> list[str]:
    found = convert(textwrap.dedent(body))["M"]
    assert isinstance(found, ConvertedClass), found.reason
    assert (found.confidence is Confidence.REVIEW) == bool(found.review)
    return [text for _, text in found.review]


TIED = """\
class Tied(nn.Module):
  table: nn.Module

  def __call__(self, x):
    return self.table(x)


class M(nn.Module):
  def setup(self):
    self.table = nn.Embed(11, 6)
    self.{holder} = Tied(self.table)

  def __call__(self, ids):
    return self.{holder}(ids)
"""


def test_a_submodule_given_to_one_that_sorts_before_it_wants_a_look() -> None:
    assert any("below 'decoder'" in one for one in notes(TIED.format(holder="decoder")))


def test_a_submodule_given_to_one_that_sorts_after_it_keeps_its_path() -> None:
    assert notes(TIED.format(holder="writer")) == []


@pytest.mark.parametrize(
    ("update", "looks"),
    [
        ("v.value = v.value + x.mean()", True),
        ("v.value += x[0]", True),
        ("v.value += 1", True),  # once for every call of init
        (
            "v.value = jnp.ones(6)",
            False,
        ),  # neither input nor state reaches it: __init__ does it, too
        ("if not self.is_initializing():\n      v.value += 1", False),
        ("if x.ndim == 2:\n      v.value += 1", True),
    ],
)
def test_an_update_that_init_performs_wants_a_look(update: str, looks: bool) -> None:
    found = notes(
        f"""\
class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    v = self.variable("state", "v", jnp.zeros, (6,))
    {update}
    return x + v.value
"""
    )
    assert any("Linen's init runs this update" in one for one in found) is looks


def test_a_variable_that_the_first_call_creates_wants_a_look() -> None:
    found = notes(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            v = self.variable("state", "v", lambda: x.mean(0))
            return x - v.value
        """
    )
    assert any("the first call creates" in one for one in found)
