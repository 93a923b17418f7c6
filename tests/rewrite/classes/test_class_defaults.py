"""Defaults of fields that methods read off their class."""

from __future__ import annotations

import pytest

from tests.rewrite.running import lazy, migrated

MODEL = """\
import flax.linen as nn


class M(nn.Module):
    width: int = 4
    scale = 2

    {method}

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x) * {read}
"""


def model(read: str, method: str = "") -> str:
    return MODEL.format(read=read, method=method)


OF_CLASS = "@classmethod\n    def default(cls):\n        return cls.{}"


@pytest.mark.parametrize(
    "source",
    [
        model("type(self).width"),
        model("self.__class__.width"),
        model("M.width"),
        model("self.default()", OF_CLASS.format("width")),
        model("getattr(type(self), 'width')"),
        model(
            "self.default()",
            "def default(self):\n        own = type(self)\n        return own.width",
        ),
    ],
)
def test_a_class_whose_methods_read_one_is_lazy(source: str) -> None:
    assert "which only Linen's class has" in lazy(source, "M")


@pytest.mark.parametrize(
    "source",
    [
        model("type(self).scale"),
        model("M.scale"),
        model("len(type(self).__name__)"),
        model("self.default()", OF_CLASS.format("scale")),
        model("(2 if isinstance(self, type(self)) else 1)"),
        model("(2 if type(self) is M else 1)"),
    ],
)
def test_a_class_whose_methods_read_its_constants_is_explicit(source: str) -> None:
    assert "class M(nnx.Module)" in migrated(source)
