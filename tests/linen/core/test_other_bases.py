"""Classes whose first base is no module: ABC, Generic, a Protocol, a class with slots."""

import abc
from typing import Generic, Protocol, TypeVar

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import linen as nn

T = TypeVar("T")


class Abstract(abc.ABC, nn.Module):
    @abc.abstractmethod
    def __call__(self, x): ...


class OfAbstract(Abstract):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class OfGeneric(Generic[T], nn.Module):  # noqa: PYI059 - its place is what is tested
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Callable(Protocol):
    def __call__(self, x): ...


class OfProtocol(Callable, nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Slots:
    __slots__ = ()


class OfSlots(Slots, nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


@pytest.mark.parametrize("cls", [OfAbstract, OfGeneric, OfProtocol, OfSlots])
def test_such_a_class_is_built_split_and_called(cls):
    x = jnp.ones((2, 4))
    variables = cls().init(jax.random.key(0), x)
    built = nn.build(cls(), x, rngs=jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, nn.variables(built), variables)
    graphdef, state = nnx.split(built)
    np.testing.assert_array_equal(nnx.merge(graphdef, state)(x), cls().apply(variables, x))
    assert isinstance(built, cls)


def test_a_built_class_keeps_the_parameters_of_a_generic_base():
    built = nn.build(OfGeneric[int](), jnp.ones((2, 4)), rngs=0)
    assert type(built).__parameters__ == (T,)


def test_modules_that_stay_linen_are_modules() -> None:
    theirs = flax.linen.Dense(3)
    assert isinstance(theirs, nn.Module)
    assert not isinstance(theirs, nnx.Module)
    assert not isinstance(theirs, nn.Dense)
    assert not issubclass(flax.linen.Dense, nn.Dense)
    assert not isinstance(3, nn.Module)
    assert not isinstance(nnx.Linear(1, 1, rngs=nnx.Rngs(0)), nn.Module)


def test_lazy_modules_are_of_their_classes_alone() -> None:
    ours = nn.Dense(3)
    assert isinstance(ours, nn.Module)
    assert isinstance(ours, nnx.Module)
    assert not isinstance(ours, flax.linen.Module)
