"""Class decorators written for Linen modules."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from flax import nnx

from nnx_migrate import nn as nnm

SEEN: list[Any] = []
KINDS = ["a"]


def wrapping(cls: Any) -> Any:
    original = cls.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        SEEN.append((args, kwargs, [one.name for one in dataclasses.fields(self)]))
        original(self, *args, **kwargs)

    cls.__init__ = init
    return cls


@nnm.class_decorator(wrapping, sizes=("in_features",))
class Layer(nnx.Module):
    def __init__(
        self, width: int, kinds: Any = KINDS, *, scale: float = 1.0, in_features: int, rngs: Any
    ) -> None:
        self.kinds, self.scale = tuple(kinds), scale
        self.dense = nnx.Linear(in_features, width, rngs=rngs)


class Wider(Layer):
    def __init__(self, *, rngs: Any) -> None:
        super().__init__(7, in_features=2, rngs=rngs)


def test_the_decorator_sees_fields_and_the_module_gets_all() -> None:
    SEEN.clear()
    made = Layer(3, scale=2.0, in_features=4, rngs=nnx.Rngs(0))
    assert SEEN == [((3,), {"scale": 2.0}, ["width", "kinds", "scale"])]
    assert made.dense.kernel.shape == (4, 3)
    assert (made.scale, made.kinds) == (2.0, ("a",))


def test_fields_and_class_level_defaults_are_those_of_a_linen_class() -> None:
    width, kinds, scale = dataclasses.fields(Layer)  # type: ignore[arg-type]
    assert (width.default, scale.default, scale.kw_only) == (dataclasses.MISSING, 1.0, True)
    assert kinds.default_factory() == ["a"]  # type: ignore[misc]
    assert Layer.scale == 1.0  # type: ignore[attr-defined]


def test_a_subclass_passes_sizes_through() -> None:
    assert Wider(rngs=nnx.Rngs(0)).dense.kernel.shape == (2, 7)


def test_a_constructor_without_its_sizes_fails() -> None:
    with pytest.raises(TypeError, match="in_features"):
        Layer(3, rngs=nnx.Rngs(0))  # type: ignore[call-arg]


def test_a_decorator_that_returns_another_class_is_refused() -> None:
    with pytest.raises(TypeError, match="to return Layer"):
        nnm.class_decorator(lambda cls: object)(Layer)
