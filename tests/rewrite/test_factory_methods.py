"""Methods that build one submodule for the classes that call them."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check
from tests.rewrite.projects import LINEN, outcomes, rewrite, texts

SETUP = """\
class M(nn.Module):
    width: int
    bias: bool = True

    def setup(self):
        self.first = self.dense(self.width)
        self.second = self.dense(3)

    {decorator}def dense(self, n):
        {body}

    def __call__(self, x):
        return self.second(nn.relu(self.first(x)))
"""
MADE = "return nn.Dense(n, use_bias=self.bias)"
BLOCK = """\
class Block(nn.Module):
    n: int
    scale: float = 1.0

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.n)(x) * self.scale

    @classmethod
    def scaled(cls, scale, **kwargs):
        kwargs["scale"] = 2 * scale
        return cls(**kwargs)


"""
USER = """\
class M(nn.Module):
    scale: float = 3.0

    @nn.compact
    def __call__(self, x):
        x = Block.scaled(self.scale, n=4)(x)
        return Block.scaled(1.0, n=2, name="last")(x)
"""


def run(body: str) -> tuple[str, str]:
    """What becomes of class ``M``: its outcome, and the new text or the reason."""
    files = {"model.py": LINEN + body}
    result = rewrite(files)
    (found,) = (one for one in result.classes if one.name == "model.M")
    return found.outcome.value, found.reason or texts(result, files)["model.py"]


def same(body: str, *args: Any, **sizes: int) -> str:
    """Check that ``M(*args)`` computes what it did; return the new text."""
    outcome, text = run(body)
    assert outcome == "rewritten", text
    before, after = (_module(name, one) for name, one in (("old", LINEN + body), ("new", text)))
    x = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    case = ParityCase(
        linen=before["M"](*args),
        nnx=lambda rngs: after["M"](*args, **sizes, rngs=rngs),
        inputs=(x,),
    )
    check(case).raise_if_different()
    return text


def _module(name: str, text: str) -> dict[str, Any]:
    module = sys.modules[name] = types.ModuleType(name)
    exec(text, module.__dict__)  # noqa: S102
    return module.__dict__


@pytest.mark.parametrize("decorator", ["", "@nn.nowrap\n    "])
def test_setup_builds_through_a_method(decorator: str) -> None:
    text = same(SETUP.format(decorator=decorator, body=MADE), 4, in_features=5)
    assert "self.first = self.dense(self.width, in_features=in_features, rngs=rngs)" in text
    assert "self.second = self.dense(3, in_features=self.width, rngs=rngs)" in text
    assert "    def dense(self, n, *, in_features=None, rngs):\n" in text
    assert "nowrap" not in text


def test_a_compact_method_builds_through_a_method() -> None:
    body = (
        "class M(nn.Module):\n"
        "    width: int\n"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        "        x = nn.Dense(7)(x)\n"
        "        for n in (self.width, 3):\n"
        "            x = self.dense(n=n)(x)\n"
        "        return x\n"
        "    def dense(self, *, n, bias=False):\n"
        "        return nn.Dense(n, use_bias=bias)\n"
    )
    assert "def dense(self, *, n, bias=False, in_features=None, rngs):" in same(
        body, 4, in_features=5
    )


def test_a_list_of_setup_is_built_through_a_method() -> None:
    body = (
        "class M(nn.Module):\n"
        "    widths: tuple\n"
        "    def setup(self):\n"
        "        self.layers = [self.dense(n) for n in self.widths]\n"
        "    def dense(self, n):\n"
        "        return nn.Dense(n)\n"
        "    def __call__(self, x):\n"
        "        for layer in self.layers:\n"
        "            x = layer(x)\n"
        "        return x\n"
    )
    same(body, (4, 3), in_features=5)


@pytest.mark.parametrize("normed", [True, False])
def test_attributes_of_setup_name_what_is_one_of_several_classes(normed: bool) -> None:
    body = (
        "class M(nn.Module):\n"
        "    normed: bool\n"
        "    def setup(self):\n"
        "        self.layer = self.build()\n"
        "    def build(self):\n"
        "        if self.normed:\n"
        "            return nn.LayerNorm()\n"
        "        return nn.Dense(5)\n"
        "    def __call__(self, x):\n"
        "        return self.layer(x)\n"
    )
    same(body, normed, in_features=5)


def test_heirs_build_through_the_method_of_their_base() -> None:
    base = (
        "class Base(nn.Module):\n"
        "    bias: bool = True\n"
        "    def dense(self, n):\n"
        "        return nn.Dense(n, use_bias=self.bias)\n\n\n"
    )
    heir = (
        "class M(Base):\n"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        "        return self.dense(3)(self.dense(4)(x))\n"
    )
    same(base + heir, False, in_features=5)


def test_a_class_method_builds_its_class() -> None:
    text = same(BLOCK + USER, in_features=5)
    assert (
        "self.Block_0 = Block.scaled(self.scale, n=4, in_features=in_features, rngs=rngs)" in text
    )
    assert "self.last = Block.scaled(1.0, n=2, in_features=4, rngs=rngs)" in text
    assert "def scaled(cls, scale, *, in_features=None, rngs, **kwargs):" in text


def test_a_method_builds_through_a_class_method() -> None:
    body = BLOCK + (
        "class M(nn.Module):\n"
        "    scale: float = 3.0\n"
        "    def setup(self):\n"
        "        self.block = self.build(3)\n"
        "    def build(self, n):\n"
        "        options = {'n': n}\n"
        "        if self.scale > 2:\n"
        "            return Block.scaled(self.scale, **options)\n"
        "        return Block(**options)\n"
        "    def __call__(self, x):\n"
        "        return self.block(x)\n"
    )
    same(body, in_features=5)
    same(body, 1.0, in_features=5)


def test_a_field_that_the_method_reads_is_not_set_anew_for_a_call() -> None:
    body = SETUP.format(decorator="", body=MADE).replace("class M", "class Inner") + (
        "\n\nclass M(nn.Module):\n"
        "    @nn.compact\n"
        "    def __call__(self, x, bias=True):\n"
        "        return Inner(4, bias=bias)(x)\n"
    )
    assert run(body)[0] == "refused"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return (nn.Dense(n), 1)", id="returns more"),
        pytest.param("return Other(nn.Dense(n))", id="builds one in another"),
        pytest.param("return nn.Dense(n, name='out')", id="names it"),
        pytest.param("return nn.Dense(n, parent=self)", id="hands the module on"),
        pytest.param("return nn.Dense(self.size(n))", id="calls a method"),
        pytest.param("self.n = n\n        return nn.Dense(n)", id="sets something"),
        pytest.param("return (lambda self: nn.Dense(n))(3)", id="another self"),
        pytest.param("rngs = n\n        return nn.Dense(rngs)", id="has rngs"),
    ],
)
def test_methods_that_do_more_keep_their_class_linen(body: str) -> None:
    text = SETUP.format(decorator="", body=body) + "    def size(self, n):\n        return n\n"
    assert run(text)[0] == "refused"


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("    def other(self):\n        return self.dense\n", id="handed on"),
        pytest.param("    def other(self):\n        return self.dense(3)\n", id="called elsewhere"),
        pytest.param("    def other(self):\n        return getattr(self, 'dense')\n", id="by name"),
        pytest.param("\n\nlayer = M(3).dense(4)\n", id="called from outside"),
        pytest.param(
            "\n\nclass H(M):\n    def dense(self, n):\n        return None\n", id="replaced"
        ),
    ],
)
def test_methods_that_are_used_otherwise_keep_their_class_linen(more: str) -> None:
    outcome, _ = run(SETUP.format(decorator="", body=MADE) + more)
    assert outcome == "refused"


@pytest.mark.parametrize("decorator", ["@functools.cache\n    ", "@property\n    ", "@other\n    "])
def test_decorated_methods_keep_their_class_linen(decorator: str) -> None:
    assert run(SETUP.format(decorator=decorator, body=MADE))[0] == "refused"


def test_a_field_that_holds_a_module_is_not_handed_on() -> None:
    body = (
        "class Block(nn.Module):\n"
        "    inner: nn.Module\n"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        "        return self.inner(x)\n\n\n"
        "class M(nn.Module):\n"
        "    inner: nn.Module\n"
        "    def setup(self):\n"
        "        self.block = self.build()\n"
        "    def build(self):\n"
        "        return Block(self.inner)\n"
        "    def __call__(self, x):\n"
        "        return self.block(x)\n"
    )
    assert run(body)[0] == "refused"


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("\n\nclass H(Block):\n    pass\n", id="heirs build themselves"),
        pytest.param("\n\nmake = Block.scaled\n", id="handed on"),
        pytest.param("\n\ndef make(kind):\n    return kind.scaled(2)\n", id="of an unknown class"),
        pytest.param("\n\nmake = getattr(Block, 'scaled')\n", id="by name"),
        pytest.param("\n\nblock = Block.scaled(2, n=3)\n", id="called from outside"),
    ],
)
def test_class_methods_that_are_used_otherwise_keep_their_users_linen(more: str) -> None:
    assert run(BLOCK + USER + more)[0] == "refused"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return cls(**kwargs)", "made = cls(**kwargs)\n        return made"),
        ("return cls(**kwargs)", "return cls(**kwargs), cls"),
        ("return cls(**kwargs)", "return cls(**kwargs) if cls.ready else cls(n=1)"),
        ('kwargs["scale"] = 2 * scale', 'kwargs["name"] = "out"'),
        ('kwargs["scale"] = 2 * scale', "kwargs.update(scale)"),
    ],
)
def test_class_methods_that_do_more_keep_their_users_linen(old: str, new: str) -> None:
    assert run(BLOCK.replace(old, new) + USER)[0] == "refused"


def test_a_class_whose_factory_method_stays_is_whole() -> None:
    files = {"model.py": LINEN + SETUP.format(decorator="", body=MADE) + "\n\nM(3).dense(4)\n"}
    result = rewrite(files)
    assert outcomes(result) == {"model.M": "refused"}
    assert texts(result, files) == files
