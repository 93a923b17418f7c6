"""Generic module classes, written with their types."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Form
from tests.rewrite.projects import outcomes, rewrite, rewrite_in_form

HEAD = """\
from typing import Any, Generic, TypeVar
import jax
import flax.linen as nn

T = TypeVar('T')


class Block(nn.Module, Generic[T]):
    @nn.compact
    def __call__(self, x: T) -> T:
        return x * self.param('scale', nn.initializers.ones, ())


"""


def model(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}class Model(nn.Module):\n{lines}"


@pytest.mark.parametrize(
    "body",
    [
        "def setup(self):\n    unused = Block[Any]()\ndef __call__(self, x):\n    return x",
        "def setup(self):\n    Kind = Block[int]\ndef __call__(self, x):\n    return x",
        "def setup(self):\n    self.b = Block[Any]()\ndef __call__(self, x):\n    return self.b(x)",
        "@nn.compact\ndef __call__(self, x):\n    return Block[int](name='b')(x)",
        "def help(self, b=Block[int]()):\n    return 3\ndef __call__(self, x):\n    return self.help()",
    ],
)
def test_a_class_with_types_inside_a_module_is_refused(body: str) -> None:
    assert outcomes(rewrite({"m.py": model(body)}))["m.Model"] == "refused"


@pytest.mark.parametrize(
    "body",
    [
        "def setup(self):\n    self.b = Block()\ndef __call__(self, x):\n    return self.b(x)",
        "inner: Block[Any]\n@nn.compact\ndef __call__(self, x: Block[int]) -> Block[int]:\n    return x",
    ],
)
def test_annotations_with_types_stay(body: str) -> None:
    assert outcomes(rewrite({"m.py": model(body)}))["m.Model"] == "rewritten"


def test_a_base_with_types_is_the_class() -> None:
    text = f"{HEAD}class Wide(Block[int]):\n    width: int = 3\n"
    assert outcomes(rewrite({"m.py": text}))["m.Wide"] == "rewritten"


def test_a_class_that_is_given_types_outside_of_modules_is_lazy() -> None:
    text = f"{HEAD}def main(x):\n    model = Block[int]()\n    return model.init(jax.random.key(0), x)\n"
    (block,) = rewrite_in_form({"m.py": text}, "auto").classes
    assert block.form is Form.LAZY
    assert "is given types" in (block.reason or "")
