"""What ``setup`` does to variables happens before every call in Linen, and once in ``__init__``."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, refusal

SETUP = """\
class M(nn.Module):
  def setup(self):
    self.v = self.variable("s", "v", jnp.zeros, ())
    {change}

  def __call__(self, x):
    return self.other(x) + self.v.value

  def other(self, x):
    return x

  def move(self):
    self.v.value = self.v.value + 1
"""


@pytest.mark.parametrize(
    "change",
    [
        "self.v.value = jnp.ones(())",
        "self.v.value += 1",
        "v = self.v\n    v.value = jnp.ones(())",
        "self.put_variable('s', 'v', jnp.ones(()))",
        "self.sow('s', 'w', jnp.ones(()))",
        "self.move()",
        "if self.is_initializing():\n      pass\n    else:\n      self.v.value += 1",
        "if not self.is_initializing():\n      self.v.value += 1",
        "for _ in range(2):\n      self.v.value += 1",
    ],
)
def test_a_change_of_state_in_setup_is_refused(change: str) -> None:
    assert "setup changes a variable" in refusal(SETUP.format(change=change)).reason


@pytest.mark.parametrize(
    "change",
    [
        "if self.is_initializing():\n      self.v.value = jnp.ones(())",
        "self.w = 3",
        "self.value = nn.Embed(3, 3)",
    ],
)
def test_what_only_the_initial_call_changes_is_part_of_the_constructor(change: str) -> None:
    assert "def __init__" in converted(SETUP.format(change=change))
