"""Names that NNX's Module has and Linen's has not: what stands under them stays Linen's."""

from __future__ import annotations

import pytest
from flax import linen, nnx

from nnx_migrate.rewrite.classes.checks.nnx_names import INTERNAL, PUBLIC
from tests.rewrite.classes.support import converted, refusal
from tests.rewrite.running import printed_alike

BEHIND = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Root:
    eval = 3.0


class Mode(Root):
    @property
    def train(self):
        return 2.0

    @staticmethod
    def set_attributes(x):
        return x - 1

    @classmethod
    def iter_children(cls):
        return cls.__name__


class Net(nn.Module, Mode):
    w: int = 4

    def setup(self):
        self.d = nn.Dense(self.w)

    def __call__(self, x):
        assert self.iter_children() == "Sub"
        return self.set_attributes(self.d(x)) * self.train * self.eval


class Sub(Net):
    @property
    def train(self):
        return super().train + 1


class Default(nn.Module, Mode):
    eval: float

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x) * self.eval


def main():
    x = jnp.ones((2, 3))
    for m in (Sub(), Default(), Default(4.0)):
        print(m.apply(m.init(jax.random.key(0), x), x))
        print(hasattr(m, "train"), hasattr(type(m), "train"), hasattr(m, "iter_modules"))
"""

ASKED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Inner(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Net(nn.Module):
    deep: bool = False

    def setup(self):
        self.inner = Inner()
        if self.deep:
            self.train = nn.Dense(3)

    def __call__(self, x):
        x = self.inner(x)
        return self.train(x) if hasattr(self, "train") else x * getattr(self, "eval", 2.0)


class Plain(nn.Module):
    def setup(self):
        self.inner = Inner()

    def __call__(self, x):
        return self.inner(x)


def look(m, x):
    return hasattr(m, "eval"), hasattr(m.inner, "eval"), m(x).sum()


def main():
    x = jnp.ones((2, 3))
    for m in (Net(), Net(True), Plain()):
        v = m.init(jax.random.key(0), x)
        print(m.apply(v, x), hasattr(m, "train"), hasattr(m.bind(v), "train"))
        print(m.apply(v, x, method=look), hasattr(type(m), "train"))
"""


def test_the_names_are_those_of_the_installed_flax() -> None:
    """And of Python's abstract classes, whose notes are nobody's to have."""
    added = {*dir(nnx.Module)} - {*dir(linen.Module)}
    own = {one for one in added if not one.startswith("__")} - {"_abc_impl"}
    assert own == PUBLIC | INTERNAL


def test_a_base_behind_the_module_class_has_its_names() -> None:
    forms = printed_alike(BEHIND)
    assert forms["m.Net"] == forms["m.Sub"] == forms["m.Default"] == "lazy"


def test_code_that_asks_for_them_gets_linens_answer() -> None:
    forms = printed_alike(ASKED)
    assert (forms["m.Net"], forms["m.Plain"], forms["m.Inner"]) == ("lazy", "lazy", "explicit")


MIXIN = """\
class Mode:
    def NAME(self, x):
        return x + 1

class M(BASES):
    @nn.compact
    def __call__(self, x):
        return self.NAME(nn.Dense(4)(x))
"""


@pytest.mark.parametrize("name", ["train", "eval", "iter_modules"])
def test_a_base_behind_the_module_class_is_refused(name: str) -> None:
    found = refusal(MIXIN.replace("NAME", name).replace("BASES", "nn.Module, Mode"))
    assert f"nnx.Module has '{name}', too, and stands before its base" in found.reason


@pytest.mark.parametrize(
    ("name", "bases"), [("train", "Mode, nn.Module"), ("head", "nn.Module, Mode")]
)
def test_one_before_it_is_kept_and_so_are_other_names(name: str, bases: str) -> None:
    source = MIXIN.replace("NAME", name).replace("BASES", bases)
    assert f"class M({bases.replace('nn.', 'nnx.')})" in converted(source)


def test_a_name_that_nnx_uses_itself_is_refused() -> None:
    found = refusal(MIXIN.replace("NAME", "_setattr").replace("BASES", "Mode, nn.Module"))
    assert "NNX uses '_setattr' of its modules itself" in found.reason
