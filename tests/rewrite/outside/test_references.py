"""References to Linen outside the classes: functions always, the rest only where classes own the code."""

from __future__ import annotations

import pytest

from tests.rewrite.outside.converting import convert, convert_modules, refusals

FREE = "import flax.linen as nn\nfrom functools import partial\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('ACT = {"relu": nn.relu}', 'ACT = {"relu": nnx.relu}'),
        ("f = partial(nn.gelu, approximate=False)", "f = partial(nnx.gelu, approximate=False)"),
        ("init = nn.initializers.zeros", "init = nnx.initializers.zeros"),
        ("init = nn.initializers.normal(0.1)", "init = nnx.initializers.normal(0.1)"),
        ("def f(x, act=nn.relu): return act(x)", "def f(x, act=nnx.relu): return act(x)"),
        ("def f(x): return nn.softmax(x)", "def f(x): return nnx.softmax(x)"),
        ("y = [nn.relu(x) for x in z]", "y = [nnx.relu(x) for x in z]"),
        ("act = nn.relu\ny = act(1.0)", "act = nnx.relu\ny = act(1.0)"),
        ("class A:\n    act = nn.relu\n", "class A:\n    act = nnx.relu\n"),
        ("s = f'{nn.relu(1)}'", "s = f'{nnx.relu(1)}'"),
    ],
)
def test_functions_are_the_same_in_both_libraries(before: str, after: str) -> None:
    text, result = convert(before, head=FREE, converted=())
    assert text == after
    assert refusals(result) == []


@pytest.mark.parametrize(
    "code",
    [
        "def f(m: nn.Module) -> nn.Module: ...",
        "x = isinstance(y, nn.Module)",
        "Dense = partial(nn.Dense, use_bias=False)",
        "LAYERS = [nn.Dense, nn.Conv]",
        "layer = nn.Dense(3)",
        "y = nn.apply(f, model)",
        "@nn.compact\ndef f(x): ...",
        "x = nn",
        "y = nn.no_such_name",
        "f = lambda x, nn: nn.relu(x)",
        "def f(x):\n    import numpy as nn\n    return nn.tanh(x)",
    ],
)
def test_what_is_about_modules_is_left_for_the_lazy_form(code: str) -> None:
    text, result = convert(code, head=FREE, converted=())
    assert text == code
    assert refusals(result) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("OWNED = nn.Dense\n", "OWNED = nnm.factory.Dense\n"),
        (
            "OWNED = functools.partial(nn.Dense, use_bias=False)\n",
            "OWNED = functools.partial(nnm.factory.Dense, use_bias=False)\n",
        ),
        (
            "Inner = functools.partial(nn.Dense)\nOWNED = lambda f: Inner(f)\n",
            "Inner = functools.partial(nnm.factory.Dense)\nOWNED = lambda f: Inner(f)\n",
        ),
        (
            "def OWNED(x):\n    return isinstance(x, nn.Module)\n",
            "def OWNED(x):\n    return isinstance(x, nnx.Module)\n",
        ),
    ],
)
def test_what_explicit_classes_alone_read_becomes_nnx(before: str, after: str) -> None:
    text, result = convert(before)
    assert text == after
    assert refusals(result) == []


@pytest.mark.parametrize(
    "reader",
    [
        "STAYING = OWNED\n",
        "def main():\n    return OWNED\n",
        "class Config:\n    layer = OWNED\n",
        "def main():\n    return helper()\n\ndef helper():\n    return OWNED\n",
        "print(OWNED)\n",
        "import m\n\ndef main(name):\n    return getattr(m, name)\n",
        "def main(name):\n    return globals()[name]\n",
        "import sys\nLAYERS = vars(sys.modules[__name__])\n",
    ],
)
def test_what_other_code_reads_too_stays(reader: str) -> None:
    code = f"OWNED = functools.partial(nn.Dense, use_bias=False)\n{reader}"
    text, result = convert(code)
    assert text == code
    assert not result.edits


def test_a_statement_of_which_other_code_reads_a_part_stays() -> None:
    code = "if True:\n    OWNED = nn.Dense\n    HEAD = nn.Conv\ndef main():\n    return HEAD\n"
    text, result = convert(code)
    assert text == code
    assert not result.edits


@pytest.mark.parametrize(
    "reader",
    [
        "from layers import *\nx = Dense\n",
        "from pkg import Dense\nx = Dense\n",
        "import pkg\nx = pkg.Dense\n",
        "import layers\nx = vars(layers)\n",
    ],
)
def test_readers_are_found_through_modules(reader: str) -> None:
    texts = {
        "layers": "import flax.linen as nn\nDense = nn.Dense\n",
        "pkg": "from layers import *\n",
        "net": "import flax.linen as nn\nfrom layers import Dense\n"
        "class A(nn.Module):\n    def __call__(self, x):\n        return Dense(3)(x)\n",
    }
    new, _ = convert_modules(texts, converted={"net.A"})
    assert "Dense = nnm.factory.Dense" in new["layers"]
    new, _ = convert_modules({**texts, "run": reader}, converted={"net.A"})
    assert new["layers"] == texts["layers"]


def test_a_layer_that_owned_code_builds_is_refused() -> None:
    text, result = convert("OWNED = nn.Dense(3)\n")
    assert text == "OWNED = nn.Dense(3)\n"
    assert "built outside of a Linen class" in refusals(result)[0][1]


def test_a_use_in_another_module_counts() -> None:
    texts = {
        "layers": "import flax.linen as nn\nDense = nn.Dense\nConv = nn.Conv\n",
        "net": "import flax.linen as nn\nfrom layers import Conv, Dense as D\n"
        "class A(nn.Module):\n    def __call__(self, x):\n        return D(3)(Conv(3, (1,))(x))\n",
        "run": "import layers\nx = layers.Conv\n",
    }
    new, _ = convert_modules(texts, converted={"net.A"})
    head = "import flax.linen as nn\n"
    assert new["layers"] == f"{head}Dense = nnm.factory.Dense\nConv = nn.Conv\n"
    new, _ = convert_modules(texts, converted=())
    assert new["layers"] == texts["layers"]


def test_reexported_functions_are_followed_and_aliases_left() -> None:
    texts = {
        "common": "from flax.linen import relu\nimport flax.linen as nn\nact = nn.gelu\n",
        "use": "from common import relu, act\ny = relu(act(1.0))\n",
    }
    new, _ = convert_modules(texts, converted=())
    assert new["use"] == "from common import relu, act\ny = nnx.relu(act(1.0))\n"
    assert "act = nnx.gelu" in new["common"]


def test_inside_of_linen_classes_is_not_touched() -> None:
    code = "class B(Plain):\n    act = nn.relu\n"
    text, result = convert(code, converted={"m.MLP", "m.Plain", "m.B"})
    assert text == code
    assert not result.edits
