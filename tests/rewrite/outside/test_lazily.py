"""Places that name explicit classes take their lazy form; nothing else about them changes."""

from __future__ import annotations

import pytest

from nnx_migrate.model import SizeArgument
from tests.rewrite.outside.converting import HEAD, convert, convert_modules

REWRITTEN = {
    "a call": ("v = MLP(4).init(key, x)\n", "v = lazy(MLP)(4).init(key, x)\n"),
    "a name": (
        "m = MLP(features=4)  # wide\nv = m.init(key, x)\n",
        "m = lazy(MLP)(features=4)  # wide\nv = m.init(key, x)\n",
    ),
    "handed on": ("train(MLP(4), x)\n", "train(lazy(MLP)(4), x)\n"),
    "a value": ("NETS = {'mlp': MLP}\n", "NETS = {'mlp': lazy(MLP)}\n"),
    "a partial": (
        "Small = functools.partial(MLP, features=2)\n",
        "Small = functools.partial(lazy(MLP), features=2)\n",
    ),
    "a lift": ("Mapped = nn.vmap(MLP)\n", "Mapped = nn.vmap(lazy(MLP))\n"),
    "an alias": ("Net = MLP\nm = Net(4)\n", "Net = lazy(MLP)\nm = Net(4)\n"),
    "a method": (
        "y = MLP(4).apply(v, x, method=MLP.encode)\n",
        "y = lazy(MLP)(4).apply(v, x, method=lazy(MLP).encode)\n",
    ),
    "in a class that stays": (
        "class Other(nn.Module):\n    def setup(self):\n        self.mlp = MLP(4)\n",
        "class Other(nn.Module):\n    def setup(self):\n        self.mlp = lazy(MLP)(4)\n",
    ),
    "line ends and tabs": ("def f(k):\r\n\tm = MLP(4)\r\n", "def f(k):\r\n\tm = lazy(MLP)(4)\r\n"),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_the_class_takes_its_lazy_form(name: str) -> None:
    before, after = REWRITTEN[name]
    text, result = convert(before)
    assert text == after
    assert result.imports == {"lazy"}
    assert not result.doubts


@pytest.mark.parametrize(
    "code",
    [
        "def f(m: MLP) -> MLP: ...\n",
        "v = Stays().init(k, x)\n",
        "opt = tx.init(params)\n",
        "def f(MLP):\n    return MLP(4)\n",
    ],
)
def test_what_is_no_explicit_class_stays(code: str) -> None:
    text, result = convert(code)
    assert text == code
    assert not result.edits


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("m = MLP[int](4)\n", "is given types"),
        ("fields = MLP.__dataclass_fields__\n", "of the class itself is used"),
        ("m = MLP(nn.Dense)\n", "is given flax.linen.Dense, a module"),
        ("m = MLP(Plain)\n", "is given m.Plain, a module"),
    ],
)
def test_what_a_lazy_form_does_not_carry_is_doubted(code: str, why: str) -> None:
    _, result = convert(code)
    assert any(one.cls == "m.MLP" and why in one.reason for one in result.doubts), result.doubts


def test_a_size_that_its_name_does_not_tell_is_declared() -> None:
    sizes = {"m.MLP": (SizeArgument("depth", argument="x", axis=1),)}
    new, _ = convert_modules({"m": f"{HEAD}m = MLP(4)\n"}, sizes=sizes)
    assert new["m"] == f'{HEAD}m = lazy(MLP, depth=Size("x", 1))(4)\n'
