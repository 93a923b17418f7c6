"""Modules that inherit from protocols are explicit, with the metaclass that goes with both."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import printed_alike

CLASSES = """\
import abc
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable
import flax.linen as nn
import jax
import jax.numpy as jnp

T = TypeVar("T")

@runtime_checkable
class Encoder(Protocol):
    width: int
    def __call__(self, x): ...
    def features(self, x):
        return self(x) * 2

class Deep(Encoder, Protocol):
    depth: int

class Typed(Protocol[T]):
    def make(self) -> T: ...

class Mlp(nn.Module, Encoder):
    width: int = 4
    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)

class Wider(Mlp):
    extra: int = 1
    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width + self.extra)(x)

class Stack(Deep, nn.Module):
    width: int
    depth: int = 2
    def setup(self):
        self.layers = [Mlp(self.width) for _ in range(self.depth)]
    def __call__(self, x):
        for l in self.layers:
            x = l(x)
        return x

class Made(nn.Module, Typed[int]):
    def make(self):
        return 3
    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.make())(x)

class Lazy(Mlp):
    @nn.compact
    def __call__(self, x):
        for i in range(x.shape[0]):
            x = nn.Dense(self.width, name=f"d{i}")(x)
        return x

class NoFields(nn.Module, Encoder):
    @nn.compact
    def __call__(self, x):
        return nn.relu(x)

class Base(nn.Module, abc.ABC):
    @abc.abstractmethod
    def size(self): ...
    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.size())(x)

class Sized(Base, Encoder):
    def size(self):
        return 5

class Outer(nn.Module):
    enc: Encoder
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(self.enc(x))


def main():
    x = jnp.ones((2, 3))
    for model in MODELS:
        variables = model.init(jax.random.key(0), x)
        names = [one.__name__ for one in type(model).__mro__ if one in (Encoder, Typed, Deep)]
        print(isinstance(model, Encoder), isinstance(model, nn.Module), names)
        print(jax.tree.map(jnp.shape, variables), model.apply(variables, x).sum())
        if hasattr(model, "features"):
            print(model.apply(variables, x, method="features").sum())
"""
MODELS = {
    "a protocol": "Mlp()",
    "a subclass": "Wider(2)",
    "a protocol of a protocol in front": "Stack(3)",
    "a generic one": "Made()",
    "without fields": "NoFields()",
    "beside an abstract class": "Sized()",
    "held by another": "Outer(Mlp(5))",
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_it_is_the_same_kind_of_object_and_computes_the_same(model: str) -> None:
    found = printed_alike(CLASSES.replace("MODELS", f"[{model}]"))
    assert {*found.values()} == {"explicit"}


def test_the_metaclass_is_said_once_in_a_family() -> None:
    files = {"m.py": CLASSES.replace("MODELS", "[]")}
    text = texts(rewrite_in_form(files, "auto"), files)["m.py"]
    assert "class Mlp(nnx.Module, Encoder, metaclass=nnm.ProtocolMeta):" in text
    assert "class Wider(Mlp):" in text
    assert "class Base(nnx.Module, abc.ABC):" in text
