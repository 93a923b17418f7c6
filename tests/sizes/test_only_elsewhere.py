"""Submodules that only other methods than ``__call__`` use."""

from __future__ import annotations

from nnx_migrate.sizes import ClassSizes, analyse
from nnx_migrate.source.project import Project, parse

SOURCE = """\
import flax.linen as nn


class Net(nn.Module):
    def setup(self):
        self.a = nn.Dense(3)
        self.b = nn.Dense(4)

    def __call__(self, x):
        return {body}

    def other(self, x):
        return self.b(x)
"""


def _sizes(body: str) -> ClassSizes:
    module = parse("module", "module.py", SOURCE.format(body=body))
    return analyse(Project({"module": module}))["module.Net"]


def test_a_submodule_that_call_never_reaches_is_worth_a_look() -> None:
    [(_, message)] = _sizes("self.a(x)").review
    assert message.startswith("__call__ never reaches this submodule")


def test_a_submodule_that_call_reaches_is_not() -> None:
    assert _sizes("self.b(self.a(x))").review == ()
