"""What counts as a call site of a Linen module, and what does not: one idiom a case."""

from __future__ import annotations

import pytest

from nnx_migrate.ledger import Count, Source, count

HEAD = """\
import copy
import functools
from typing import Optional
import jax
import jax.numpy as jnp
import optax
import flax.linen as nn
from flax import nnx
from flax.training import train_state
from nnx_migrate import nn as nnm

class M(nn.Module): ...
class Sub(M): ...
class Plain:
    def apply(self): ...
class Converted(nnx.Module): ...

"""


def counted(body: str) -> Count:
    return count([Source("main.py", "main", HEAD + body)])


@pytest.mark.parametrize(
    "body",
    [
        "M().init(0)",
        "nn.Dense(3).apply({}, 1)",
        "nn.Dense.apply(nn.Dense(3), {})",
        "Sub().init_with_output(0)",
        "m = M()\nm.apply({})",
        "m: M = make()\nm.apply({})",
        "def f(m: nn.Module): m.apply({})",
        "def f(m: 'nn.Module'): m.apply({})",
        "def f(m: Optional[M]): m.apply({})",
        "def f(m: M | None = None): m.apply({})",
        "def f(m: type[M]): m().apply({})",
        "def make(): return M()\nmake().lazy_init(0)",
        "def make(x) -> M: return x\nmake(1).tabulate(0)",
        "P = functools.partial(M, 3)\nP().init(0)",
        "R = nn.remat(M)\nR().init(0)",
        "copy.copy(M()).init(0)",
        "M().clone()",
        "M().clone().copy",
        "M().module_paths(0)",
        "a, b = M(), 1\na.init(0)",
        "m = M() if jax else Sub()\nm.init(0)",
        "(m := M())\nm.unbind()",
        "nnx.bridge.to_linen(nnx.Linear, 1).init(0)",
        "class T:\n    def __init__(self): self.m = M()\n    def f(self): self.m.init(0)",
        "class T:\n    m: M\n    def f(self): self.m.init(0)",
        "class T:\n    @property\n    def m(self): return M()\n    def f(self): self.m.init(0)",
        "class L(nn.Module):\n    def f(self): self.apply({})",
    ],
)
def test_a_call_on_a_linen_module_is_certain(body: str) -> None:
    assert [one.certain for one in counted(body + "\n").call_sites] == [True]


@pytest.mark.parametrize(
    "body",
    [
        "def f(m): m.apply({})",
        "def f(m): m.inner.apply({})",
        "def f(ms):\n    for m in ms: m.init(0)",
        "def f(ms): ms[0].init(0)",
        "def f(make): make().init(0)",
        "(lambda: M())().init(0)",
        "m = M() if jax else object()\nm.init(0)",
        "m = other.thing\nm.init(0)",
        "from elsewhere import Model\nModel().init(0)",
        (
            "class L(nn.Module):\n    def setup(self): self.d = self.make()\n"
            "    def f(self): self.d.apply({})"
        ),
        "class Mixin:\n    def f(self): self.apply({})\nclass L(Mixin, nn.Module): ...",
    ],
)
def test_a_call_on_an_unknown_receiver_counts_as_uncertain(body: str) -> None:
    assert [one.certain for one in counted(body + "\n").call_sites] == [False]


@pytest.mark.parametrize(
    "body",
    [
        "optax.adam(1).init(0)",
        "tx = optax.chain(optax.adam(1))\ntx.init(0)",
        "def f(tx: optax.GradientTransformation): tx.init(0)",
        "class T:\n    def __init__(self): self.tx = optax.sgd(1)\n    def f(self): self.tx.init(0)",
        "import wandb\nwandb.init()",
        "import something\nsomething.init()",
        "Plain().apply()",
        "class T:\n    def f(self): self.apply({})",
        "nn.apply(M, 1)",
        "nn.initializers.zeros.init",
        "'x'.apply()",
        "{}.copy()",
        "def f(d): d.copy()",
        "def f(d: dict): d.apply()",
        "jnp.ones(3).copy()",
        "M().param('x')",
        "M()(1)",
        "M().other(1)",
        "jax.jit(M().apply)(1)",
        "train_state.TrainState.create(apply_fn=M().apply)",
        "def f(m: str): m.apply()",
        "nnx.bridge.lazy_init(M(), 0)",
        "nnx.bridge.ToNNX(M()).lazy_init(0)",
        "class C(nnx.Module):\n    def apply(self): ...\nC().apply()",
        "init(0)",
        "# M().init(0)\n'M().init(0)'",
    ],
)
def test_a_call_on_what_is_no_linen_module_is_not_counted(body: str) -> None:
    found = counted(body + "\n")
    assert found.call_sites == ()
    assert found.stale == ()


@pytest.mark.parametrize(
    "body",
    [
        "Converted().apply({})",
        "nnx.Linear(1, 2).init(0)",
        "nnx.bridge.ToNNX(M()).apply({})",
        "nnm.scan(Converted, length=2)().apply({})",
    ],
)
def test_a_linen_method_called_on_an_nnx_module_is_stale(body: str) -> None:
    found = counted(body + "\n")
    assert [one.line for one in found.stale] == [HEAD.count("\n") + 1]
    assert found.call_sites == ()


def test_a_file_that_gets_nothing_from_flax_has_no_call_sites() -> None:
    body = "import torch\ndef f(model): model.apply(1)\n"
    assert count([Source("t.py", "t", body), Source("m.py", "m", HEAD)]).call_sites == ()


def test_a_file_that_gets_a_model_from_another_has_call_sites() -> None:
    sources = [
        Source("t.py", "t", "from m import make\ndef f(): make().init(0)\n"),
        Source("m.py", "m", HEAD + "def make(): return M()\n"),
    ]
    assert [(one.path, one.certain) for one in count(sources).call_sites] == [("t.py", True)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("class A(nn.Module): ...", ["main.A"]),
        ("class A(Sub): ...", ["main.A"]),
        ("Base = nn.Module\nclass A(Base): ...", ["main.A"]),
        ("class A(nn.Module, G[int]): ...", ["main.A"]),
        ("class A(nn.remat(M)): ...", ["main.A"]),
        ("class A(nn.Dense): ...", ["main.A"]),
        ("def f():\n    class A(nn.Module): ...", ["main.f.A"]),
        ("class A(nnx.Module): ...", []),
        ("class A(Plain): ...", []),
        ("class A: ...", []),
        ("class A(Unknown): ...", []),
        ("class A(A): ...", []),
    ],
)
def test_linen_classes_are_found_by_their_base_chain(body: str, expected: list[str]) -> None:
    found = [one.symbol for one in counted(body + "\n").classes]
    assert found == [*["main.M", "main.Sub"], *expected]
