"""Which expressions are no bound module: what ``self.variable`` gives has no submodule ``value``."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.source.other_values import is_no_module
from nnx_migrate.source.project import Project, parse
from nnx_migrate.source.walking import each

SOURCE = """\
import flax.linen as nn


class Cached(nn.Module):
    def __call__(self, x, other):
        {}
        return cache.value
"""


def answer(body: str, base: str = "nn.Module") -> bool:
    lines = f"\n{' ' * 8}".join(body.splitlines())
    module = parse("m", "m.py", SOURCE.format(lines).replace("nn.Module", base))
    read = next(one for one in each(module.tree, ast.Return)).value
    assert isinstance(read, ast.Attribute)
    return is_no_module(Project({"m": module}), module, read.value)


@pytest.mark.parametrize(
    "body",
    [
        "cache = self.variable('cache', 'key', make)",
        "cache = self.variable('a', 'b', make)\nif x:\n    cache = self.variable('c', 'd', make)",
        "cache = kept = self.variable('cache', 'key', make)",
    ],
)
def test_a_variable_is_none(body: str) -> None:
    assert answer(body)


@pytest.mark.parametrize(
    "body",
    [
        "cache = other",
        "cache = self.variable_of(x)",
        "cache = other.variable('cache', 'key', make)",
        "cache = self.variable('cache', 'key', make)\ncache = other",
        "cache = self.variable('cache', 'key', make)\nfor cache in other:\n    pass",
        "cache, more = self.variable('cache', 'key', make), 1",
        "pass",
    ],
)
def test_what_else_is_bound_may_be_one(body: str) -> None:
    assert not answer(body)


def test_of_another_class_variable_may_be_any_method() -> None:
    assert not answer("cache = self.variable('cache', 'key', make)", "object")
