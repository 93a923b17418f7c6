"""Lazy forms of explicit classes with bases that are no modules: they have these bases, too."""

import abc
import copy
import pickle
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate import linen as nn
from tests.rewrite.running import printed_alike

T = TypeVar("T")
SEEN: list[str] = []


class Hooked:
    def __init_subclass__(cls, *, key: str, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        SEEN.append(key)


class Scaled(abc.ABC):
    @abc.abstractmethod
    def _scale(self, x): ...


class Tagged(Generic[T]):
    def train(self):
        return "training"


class Net(Scaled, Tagged[int], Hooked, nnx.Module, key="net"):
    def __init__(self, width=4, *, in_features, rngs):
        self.width = width
        self.d = nnx.Linear(in_features, width, rngs=rngs)

    def _scale(self, x):
        return x * self.width

    def __call__(self, x):
        return self._scale(self.d(x))


class Sub(Net, key="sub"):
    pass


class Abstract(Scaled, nnx.Module):
    def __init__(self, *, rngs):
        pass


@pytest.mark.parametrize("cls", [Net, Sub])
def test_an_instance_is_one_of_the_plain_bases(cls):
    model, x = nn.lazy(cls)(3), jnp.ones((2, 5))
    for base in (Scaled, Tagged, Hooked, nn.lazy(Net)):
        assert isinstance(model, base)
        assert issubclass(nn.lazy(cls), base)
    assert not isinstance(model, nn.lazy(Abstract))
    variables = model.init(jax.random.key(0), x)
    assert model.apply(variables, x).shape == (2, 3)
    assert model.train() == "training"
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.clone()):
        assert other == model
    built = nn.explicit(model, x, rngs=jax.random.key(0))
    assert isinstance(built, cls)


def test_hooks_of_the_bases_do_not_see_the_lazy_class():
    nn.lazy(Net)
    nn.lazy(Sub)
    assert SEEN == ["net", "sub"]


def test_an_abstract_class_stays_abstract():
    with pytest.raises(TypeError, match="abstract"):
        nn.lazy(Abstract)()


SOURCE = """\
import abc

import flax.linen as nn
import jax
import jax.numpy as jnp


class Gained:
    gain = 3.0


class Scaled(Gained, abc.ABC):
    @abc.abstractmethod
    def scale(self, x): ...


class Net(Scaled, nn.Module):
    w: int = 4

    def scale(self, x):
        return x * self.gain

    @nn.compact
    def __call__(self, x):
        return self.scale(nn.Dense(self.w)(x))


class Other(abc.ABC, nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


def main():
    x = jnp.ones((2, 3))
    for m in (Net(), Net(2), Other()):
        print([isinstance(m, one) for one in (Gained, Scaled, Net, Other, nn.Module, abc.ABC)])
        out = m.apply(m.init(jax.random.key(0), x), x)
        print(out / m.gain if isinstance(m, Gained) else out)
"""


def test_code_around_asks_for_a_plain_base():
    assert {*printed_alike(SOURCE).values()} == {"explicit"}
