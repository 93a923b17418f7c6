"""Code that hands modules to explicit classes, in sight and out of it: those that only call them take lazy ones."""

from __future__ import annotations

import numpy as np
import pytest

from nnx_migrate.model import Form
from tests.rewrite.projects import rewrite_in_form
from tests.rewrite.running import same_in_auto

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
HOLDER = """\
from typing import Any

import flax.linen as nn


class Holder(nn.Module):
    inner: nn.Module
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(self.inner(x))


"""
LAZY = """\


class Model(nn.Module):
    def setup(self):
        {body}

    def __call__(self, x):
        return self.many(x) + len(self.name or "")


def model():
    return Model()
"""
HANDED = {
    "to a lifted class": ("H = nn.remat(Holder)", "self.many = H(nn.Dense(2))"),
    "an attribute": (
        "H = nn.remat(Holder)",
        "self.inner = nn.Dense(2)\n        self.many = H(self.inner)",
    ),
    "through a function": (
        "def build(cls, part):\n    return cls(part)",
        "self.many = build(Holder, nn.Dense(2))",
    ),
    "among unpacked ones": ("H = [Holder][0]", "self.many = H(*(nn.Dense(2), 3))"),
    "a field that is given one": (
        (
            "H = nn.remat(Holder)\n\n\nclass Mid(nn.Module):\n    part: Any\n\n    def setup(self):\n"
            "        self.holder = H(self.part)\n\n    def __call__(self, x):\n"
            "        return self.holder(x)"
        ),
        "self.many = Mid(nn.Dense(2))",
    ),
    "a field that is annotated so": (
        (
            "H = nn.remat(Holder)\n\n\nclass Mid(nn.Module):\n    part: nn.Module\n\n    def setup(self):\n"
            "        self.holder = H(self.part)\n\n    def __call__(self, x):\n"
            "        return self.holder(x)"
        ),
        "self.many = [Mid][0](nn.Dense(2))",
    ),
    "by a local name": ("", "H = Holder\n        self.many = H(inner=nn.Dense(2))"),
    "by another name of it": ("H = Holder", "self.many = H(nn.Sequential([nn.Dense(2)]))"),
    "by keyword": ('H = {"a": Holder}', 'self.many = H["a"](inner=nn.Dense(2))'),
}


@pytest.mark.parametrize(("alias", "body"), HANDED.values(), ids=HANDED)
def test_a_class_that_only_calls_what_it_is_given_takes_lazy_modules(alias: str, body: str) -> None:
    source = HOLDER + alias + "\n" + LAZY.format(body=body)
    assert rewrite_in_form({"m.py": source}, "auto").classes[0].form is Form.EXPLICIT
    same_in_auto(source, "model()", X)


@pytest.mark.parametrize(("alias", "body"), HANDED.values(), ids=HANDED)
def test_a_class_that_hands_it_on_is_lazy(alias: str, body: str) -> None:
    on = HOLDER.replace("self.inner(x)", "nn.Sequential([self.inner])(x)")
    source = on + alias + "\n" + LAZY.format(body=body)
    holder = rewrite_in_form({"m.py": source}, "auto").classes[0]
    assert (holder.form, holder.reason) == (
        Form.LAZY,
        f"not proven: m.py:{_line(source, body)}: inner may be given a module here",
    )
    same_in_auto(source, "model()", X)


def _line(source: str, body: str) -> int:
    made = (
        "return cls(part)"
        if "build" in body
        else "H(self.part)"
        if "Mid" in body
        else body.rpartition("self.many")[2]
    )
    return source[: source.index(made)].count("\n") + 1


PLAIN = {
    "no module": (
        "H = nn.remat(Holder)",
        "self.many = nn.Dense(3)\n        self.other = max(3, 4)",
    ),
    "a module to another class": (
        "H = nn.remat(Holder)",
        "self.many = nn.Sequential([nn.Dense(3)])",
    ),
    "a module in another place": (
        "H = nn.remat(Holder)",
        "self.many = list(map(nn.Dense, [3]))[0]",
    ),
}


@pytest.mark.parametrize(("alias", "body"), PLAIN.values(), ids=PLAIN)
def test_others_stay_explicit(alias: str, body: str) -> None:
    source = HOLDER + alias + "\n" + LAZY.format(body=body)
    assert rewrite_in_form({"m.py": source}, "auto").classes[0].form is Form.EXPLICIT
    same_in_auto(source, "model()", X)
