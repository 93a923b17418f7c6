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
        return {other}
"""


def _sizes(body: str, other: str = "self.b(x)") -> ClassSizes:
    module = parse("module", "module.py", SOURCE.format(body=body, other=other))
    return analyse(Project({"module": module}))["module.Net"]


def test_a_submodule_that_call_never_reaches_is_worth_a_look() -> None:
    sizes = _sizes("self.a(x)", "self.b(x) if x is None else x")
    [(_, message)] = sizes.review
    assert message.startswith("__call__ never reaches this submodule")
    assert sizes.elsewhere == ()


def test_a_submodule_that_another_method_always_reaches_is_for_builders_to_call() -> None:
    sizes = _sizes("self.a(x)")
    [one] = sizes.elsewhere
    assert (one.call.lineno, one.methods, sizes.review) == (7, {"other"}, ())


def test_a_submodule_that_call_reaches_is_not() -> None:
    sizes = _sizes("self.b(self.a(x))")
    assert (sizes.review, sizes.elsewhere) == ((), ())
