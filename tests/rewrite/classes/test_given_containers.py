"""Lists and dicts that an explicit class gives to fields of another: Linen freezes them, whatever the annotation says."""

from __future__ import annotations

import pytest

from tests.rewrite.running import in_auto, net_alike

HEADER = """\
import dataclasses
import types
from collections.abc import Callable
from typing import Any, Optional, Tuple

import flax.linen as nn
import jax
import jax.numpy as jnp

Shape = Tuple[int, ...]


@dataclasses.dataclass(eq=False)
class Config:
    strides: Any = dataclasses.field(default_factory=lambda: [1, 1])
    width: int = 4
    dtype: Any = jnp.float32
    act: Callable = nn.relu


def strides_of(config):
    return config.strides


"""

BLOCK = """\
class Block(nn.Module):
    value: {annotation}

    @nn.compact
    def __call__(self, x):
        if self.value != (1, 1):
            x = nn.Dense(4, name="proj")(x)
        return nn.Dense(4)(x) * isinstance(self.value, {kind})


class Net(nn.Module):
    config: Any = Config()

    @nn.compact
    def __call__(self, x):
        config = self.config
        return Block({given})(x)
"""


def program(annotation: str, given: str, kind: str = "tuple") -> str:
    """``Net`` gives ``Block`` a value."""
    return HEADER + BLOCK.format(annotation=annotation, given=given, kind=kind)


def field(source: str) -> str:
    """What ``Block`` keeps of the value."""
    line = next(one for one in in_auto(source).splitlines() if "self.value = " in one)
    return line.partition(" = ")[2]


FROZEN = {
    "an option for a tuple": ("Tuple[int, int]", "self.config.strides"),
    "an option for anything": ("Any", "self.config.strides"),
    "an option through a local": ("Any", "config.strides"),
    "an option for an alias": ("Shape", "self.config.strides"),
    "an option for an optional": ("Optional[Shape]", "value=self.config.strides"),
    "an item": ("Any", "vars(self.config)['strides']"),
    "what a function gives": ("Any", "strides_of(self.config)"),
    "one of two": ("Any", "self.config.strides if self.config.width else (1, 1)"),
    "a list": ("Any", "[1, 1]"),
    "a list that is said to be a number": ("int", "[1, 1]"),
    "a list in a tuple": ("Any", "([1, 1], 2)"),
    "a copy": ("Any", "list(self.config.strides)"),
}


@pytest.mark.parametrize(("annotation", "given"), FROZEN.values(), ids=FROZEN)
def test_what_may_be_a_list_is_frozen(annotation: str, given: str) -> None:
    source = program(annotation, given)
    assert field(source) in ("nnm.as_field(value)", "nnm.freeze(value)")
    assert net_alike(source, "jnp.ones((2, 4))") == {"m.Block": "explicit", "m.Net": "explicit"}


def test_a_dict_is_frozen() -> None:
    source = program("Any", "{'a': [1]}", "dict") + "\n\nfrozen = nn.FrozenDict\n"
    assert field(source) == "nnm.as_field(value)"
    forms = net_alike(source.replace("nn.FrozenDict", "0"), "jnp.ones((2, 4))")
    assert forms == {"m.Block": "explicit", "m.Net": "explicit"}


KEPT = {
    "a number": ("int", "self.config.strides"),
    "a flag": ("bool", "self.config.strides"),
    "a text": ("Optional[str]", "self.config.strides"),
    "a function": ("Callable", "self.config.act"),
    "one with a signature": ("Callable[..., Any]", "self.config.act"),
    "a class": ("Config", "self.config.strides"),
    "a dtype": ("jnp.dtype", "self.config.dtype"),
    "any dtype": ("Any = jnp.float32", "self.config.dtype"),
    "any function": ("Any = nn.relu", "self.config.act"),
    "a tuple that is written out": ("Tuple[int, int]", "(1, 1)"),
    "one of two tuples": ("Any", "(2, 2) if self.config.width else (1, 1)"),
    "a sum of numbers": ("Any", "self.config.width - 1"),
    "what is made a tuple": ("Tuple[int, int]", "tuple(self.config.strides)"),
    "a field of its own": ("Any", "self.config"),
    "a function of another package": ("Any", "jnp.tanh"),
    "nothing": ("Any", "None"),
}


@pytest.mark.parametrize(("annotation", "given"), KEPT.values(), ids=KEPT)
def test_what_is_none_stays_as_it_is(annotation: str, given: str) -> None:
    assert field(program(annotation, given)) == "value"


def test_the_class_of_a_configuration_says_what_its_options_are() -> None:
    typed = program("Any", "self.config.width").replace("config: Any", "config: Config")
    assert field(typed) == "value"
    assert "nnm" in field(typed.replace("self.config.width", "self.config.strides"))
    assert field(typed.replace("self.config.width", "self.config.dtype")) == "value"


def test_what_is_only_handed_on_as_a_dtype_is_none() -> None:
    source = program("Any = None", "self.config.dtype")
    source = source.replace("if self.value != (1, 1):", "if True:")
    source = source.replace("nn.Dense(4)(x) * isinstance(self.value, tuple)", "x")
    assert (
        field(source.replace("nn.Dense(4, name", "nn.Dense(4, dtype=self.value, name")) == "value"
    )


def test_callers_outside_of_classes_build_it_through_lazy() -> None:
    source = program("Any", "(1, 1)") + "\n\ndef make(config):\n    return Block(config.strides)\n"
    assert field(source) == "value"
