"""Metaclasses of Linen modules: those that do not agree with NNX's are said, with a way out."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Finding, Outcome
from tests.rewrite.projects import rewrite_in_form
from tests.rewrite.running import printed_alike

CLASS = """\
import abc
import flax.linen as nn
import jax
import jax.numpy as jnp


class Named(BASE):
    def __str__(cls):
        return cls.__name__.lower()


class Marked(metaclass=Named):
    pass


class Net(HEAD):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x)


def main():
    print(Net, Net().init(jax.random.key(0), jnp.ones((1, 3))))
"""


def findings(base: str, head: str, form: str) -> list[Finding]:
    files = {"m.py": CLASS.replace("BASE", base).replace("HEAD", head)}
    found = rewrite_in_form(files, form).findings
    return [one for one in found if one.rule == "inheritance" and one.outcome is Outcome.REFUSED]


@pytest.mark.parametrize("form", ["lazy", "auto"])
@pytest.mark.parametrize("head", ["nn.Module, metaclass=Named", "Marked, nn.Module"])
@pytest.mark.parametrize("base", ["type", "abc.ABCMeta"])
def test_another_metaclass_is_said_at_the_class(base: str, head: str, form: str) -> None:
    (found,) = findings(base, head, form)
    assert (found.path, found.line, found.column) == ("m.py", 16, 1)
    assert "let Named inherit from type(nn.Module)" in found.message


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("type", "nn.Module"),
        ("type", "nn.Module, abc.ABC"),
        ("type", "nn.Module, metaclass=abc.ABCMeta"),
        ("type(nn.Module)", "nn.Module, metaclass=Named"),
        ("type", "nn.Module, metaclass=type(nn.Module)"),
    ],
)
def test_one_that_agrees_is_not(base: str, head: str) -> None:
    assert not findings(base, head, "lazy")
    printed_alike(CLASS.replace("BASE", base).replace("HEAD", head))
