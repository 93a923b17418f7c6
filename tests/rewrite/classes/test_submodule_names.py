"""``self.get_variable("params", "enc")``: variables are asked for in explicit classes, submodules in lazy ones."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import outcomes, rewrite
from tests.rewrite.running import lazy, net_alike

HEAD = """
import flax.linen as nn
import jax
import jax.numpy as jnp
"""
X = "jnp.arange(8.0).reshape(2, 4)"


def net(setup: str = "pass", before: str = "pass", result: str = "x", more: str = "") -> str:
    """A class ``Net`` that asks; what ``setup`` holds comes first."""
    return f"""{HEAD}{more}

class Net(nn.Module):
    def setup(self):
        {setup}

    @nn.compact
    def __call__(self, x):
        {before}
        return x, {result}
"""


WHOLE = "self.get_variable('params', {name}, {{'kernel': 0, 'bias': 0}})['kernel']"


@pytest.mark.parametrize(
    ("setup", "before", "name"),
    [
        ("pass", "x = nn.Dense(3, name='enc')(x)", "'enc'"),
        ("pass", "x = nn.Dense(3)(x)", "'Dense_0'"),
        ("pass", "x = nn.Dense(3, name=f'enc_{len(x)}')(x)", "'enc_2'"),
        ("pass", "x = nn.Dense(3, name='enc' if x.ndim else 'dec')(x)", "'enc'"),
        ("pass", "x = nn.Dense(3, name='enc')(x); name = 'enc'", "name"),
        ("pass", "kw = {'name': 'enc'}; x = nn.Dense(3, **kw)(x)", "'enc'"),
        ("pass", "x = nn.remat(Block)()(x)", "'CheckpointBlock_0'"),
        ("self.enc = nn.Dense(3)", "x = self.enc(x)", "'enc'"),
        ("self.enc = [nn.Dense(4), nn.Dense(3)]", "x = self.enc[1](self.enc[0](x))", "'enc_1'"),
        ("self.enc = {'a': nn.Dense(4)}", "x = self.enc['a'](x)", "'enc_a'"),
    ],
)
def test_the_dict_of_a_submodule_is_linens(setup: str, before: str, name: str) -> None:
    block = "\n\nclass Block(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
    block += "        return x * self.param('kernel', nn.initializers.ones, (1, 4))\n"
    source = net(setup, before, WHOLE.format(name=name), block)
    assert net_alike(source, X)["m.Net"] == "lazy"


@pytest.mark.parametrize(
    "result",
    [
        "self.has_variable('params', 'enc'), self.has_variable('params', 'dec')",
        "self.has_variable(name='enc', col='params')",
        "self.has_variable(*['params', 'enc'])",
        "self.get_variable('batch_stats', 'norm')",
    ],
)
def test_so_is_whether_there_is_one(result: str) -> None:
    before = "x = nn.BatchNorm(True, name='norm')(nn.Dense(3, name='enc')(x))"
    assert net_alike(net(before=before, result=result), X)["m.Net"] == "lazy"


@pytest.mark.parametrize(
    ("before", "result"),
    [
        ("w = self.param('w', nn.initializers.ones, (4,))", "self.get_variable('params', 'w')"),
        (
            "ws = [self.param(f'w_{i}', nn.initializers.ones, (4,)) for i in range(2)]",
            "[self.get_variable('params', f'w_{i}') for i in range(2)], self.get_variable('params', 'w_1')",
        ),
        ("x = nn.Dense(3, name='enc')(x)", "self.get_variable('constants', 'table', 2.0)"),
        ("d = nn.Dense(3); x = d(x)", "d.get_variable('params', 'kernel')"),
        ("d = Child(); x = d(x)", "d.get_variable('params', 'table')"),
    ],
)
def test_a_variable_is_asked_for_in_an_explicit_class(before: str, result: str) -> None:
    assert net_alike(net(before=before, result=result, more=CHILD), X)["m.Net"] == "explicit"


CHILD = """

class Child(nn.Module):
    @nn.compact
    def __call__(self, x):
        table = self.param("table", nn.initializers.ones, (1, 4))
        return nn.Dense(3, name="enc")(x * table)
"""


@pytest.mark.parametrize("name", ["enc", "Dense_0"])
def test_a_submodule_is_not_asked_for_its_own(name: str) -> None:
    asked = f"d.get_variable('params', '{name}', {{'kernel': 0}})['kernel']"
    source = net(before="d = Child(); x = d(x)", result=asked, more=CHILD)
    assert net_alike(source, X)["m.Net"] == "lazy"


def test_a_base_asks_for_what_a_subclass_builds() -> None:
    base = """

class Base(nn.Module):
    def size(self):
        return self.get_variable("params", "enc")["kernel"].size
"""
    source = net(before="x = nn.Dense(3, name='enc')(x)", result="self.size()", more=base)
    source = source.replace("class Net(nn.Module)", "class Net(Base)")
    assert net_alike(source, X) == {"m.Base": "lazy", "m.Net": "lazy"}
    assert "the name of a submodule" in lazy(source, "Net")


def test_a_base_of_another_file_asks() -> None:
    asking = "def size(self):\n        return self.get_variable('params', 'enc')['kernel'].size\n"
    base = f"import flax.linen as nn\n\n\nclass Base(nn.Module):\n    {asking}"
    source = net(before="x = nn.Dense(3, name='enc')(x)", result="self.size()")
    source = source.replace("class Net(nn.Module)", "class Net(Base)")
    result = rewrite({"base.py": base, "m.py": f"from base import Base\n{source}"})
    assert outcomes(result)["m.Net"] == "refused"


def test_another_submodule_by_a_name_that_is_put() -> None:
    source = net(before="x = nn.Dense(3, name=self.put())(x)", result="0").replace(
        "    def setup",
        "    called: str = 'enc'\n    def put(self):\n        return self.called\n\n    def setup",
    )
    asking = source.replace("return x, 0", "return x, self.has_variable('params', 'enc')")
    assert net_alike(asking, X)["m.Net"] == "lazy"
