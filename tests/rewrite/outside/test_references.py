"""References to Linen outside the classes: functions always, layers and types only if free."""

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
        ("def f(m: nn.Module) -> nn.Module: ...", "def f(m: nnx.Module) -> nnx.Module: ..."),
        ("def f(m: 'nn.Module'): ...", "def f(m: 'nn.Module'): ..."),
        (
            "Dense = partial(nn.Dense, use_bias=False)",
            "Dense = partial(nnm.factory.Dense, use_bias=False)",
        ),
        ("LAYERS = [nn.Dense, nn.Conv]", "LAYERS = [nnm.factory.Dense, nnm.factory.Conv]"),
        ("act = nn.relu\ny = act(1.0)", "act = nnx.relu\ny = act(1.0)"),
        ("class A:\n    act = nn.relu\n", "class A:\n    act = nnx.relu\n"),
        ("f = lambda x, nn: nn.relu(x)", "f = lambda x, nn: nn.relu(x)"),
        ("def f(x):\n    import numpy as nn\n    return nn.tanh(x)", None),
        ("x = isinstance(y, nn.Module)", "x = isinstance(y, nnx.Module)"),
        ("s = f'{nn.relu(1)}'", "s = f'{nnx.relu(1)}'"),
    ],
)
def test_references_without_linen_classes_around(before: str, after: str | None) -> None:
    text, result = convert(before, head=FREE, converted=())
    assert text == (before if after is None else after)
    assert refusals(result) == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("layer = nn.Dense(3)", "built outside of a Linen class"),
        ("def f(x):\n    return nn.Sequential([nn.relu])", "built outside of a Linen class"),
        ("y = nn.apply(f, model)", "nn.apply"),
        ("@nn.compact\ndef f(x): ...", "outside of a Linen class"),
        ("x = nn", "flax.linen itself"),
        ("y = nn.no_such_name", "no rule knows"),
    ],
)
def test_references_that_are_refused_stay(code: str, message: str) -> None:
    text, result = convert(code, head=FREE, converted=())
    kept = text.replace("nnx.relu", "nn.relu")
    assert kept == code
    assert any(message in one for _, one in refusals(result))


@pytest.mark.parametrize(
    "code",
    [
        "STAYING = nn.Dense\n",
        "STAYING = functools.partial(nn.Dense, use_bias=False)\n",
        "Inner = functools.partial(nn.Dense)\nSTAYING = lambda f: Inner(f)\n",
        "def STAYING(x):\n    return helper(nn.Dense, x)\n",
    ],
)
def test_what_a_class_that_stays_linen_uses_stays(code: str) -> None:
    text, result = convert(code)
    assert text == code
    assert [kind for kind, _ in refusals(result)] == ["reference"]
    assert "m.Stays" in refusals(result)[0][1]


def test_what_no_staying_class_uses_is_free() -> None:
    text, result = convert("Free = functools.partial(nn.Dense, use_bias=False)\n")
    assert text == "Free = functools.partial(nnm.factory.Dense, use_bias=False)\n"
    assert refusals(result) == []


def test_functions_are_safe_even_for_classes_that_stay() -> None:
    text, result = convert("STAYING = {'relu': nn.relu}['relu']\n")
    assert text == "STAYING = {'relu': nnx.relu}['relu']\n"
    assert result.imports == {"nnx"}


def test_a_plain_alias_stays_with_the_class_that_reads_it() -> None:
    text, result = convert("STAYING = nn.relu\nother = nn.relu\n")
    assert text == "STAYING = nn.relu\nother = nnx.relu\n"
    assert "m.Stays uses STAYING" in refusals(result)[0][1]


def test_module_as_a_type_is_refused_while_a_class_stays() -> None:
    code = "def f(m: nn.Module): ...\n"
    text, result = convert(code)
    assert text == code
    assert "may mean a Linen or an NNX module" in refusals(result)[0][1]


def test_a_use_in_another_module_counts() -> None:
    texts = {
        "layers": "import flax.linen as nn\nDense = nn.Dense\nConv = nn.Conv\n",
        "net": "import flax.linen as nn\nfrom layers import Dense as D\n"
        "class A(nn.Module):\n    def __call__(self, x):\n        return D(3)(x)\n",
    }
    new, results = convert_modules(texts, converted=())
    assert new["layers"] == "import flax.linen as nn\nDense = nn.Dense\nConv = nnm.factory.Conv\n"
    assert len(refusals(results["layers"])) == 1
    new, _ = convert_modules(texts, converted={"net.A"})
    assert "Dense = nnm.factory.Dense" in new["layers"]


def test_reexported_functions_are_followed_and_aliases_left() -> None:
    texts = {
        "common": "from flax.linen import relu\nimport flax.linen as nn\nact = nn.gelu\n",
        "use": "from common import relu, act\ny = relu(act(1.0))\n",
    }
    new, _ = convert_modules(texts, converted=())
    assert new["use"] == "from common import relu, act\ny = nnx.relu(act(1.0))\n"
    assert "act = nnx.gelu" in new["common"]


def test_inside_of_linen_classes_is_not_touched() -> None:
    text, result = convert(
        "class B(Plain):\n    act = nn.relu\n", converted={"m.MLP", "m.Plain", "m.B"}
    )
    assert text == "class B(Plain):\n    act = nn.relu\n"
    assert not result.edits
