"""What constructs say of Linen's layers and of those they become is what the installed ones are."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate.constructs import all_layers
from nnx_migrate.constructs.common.base import PLACEMENT
from nnx_migrate.constructs.common.rules import Layer

RNGS = nnx.Rngs(0)
DTYPES: dict[str, Any] = {"dtype": jnp.bfloat16, "param_dtype": jnp.float16}
LAYERS = {layer.name: layer for layer in all_layers().values() if layer.name != "BatchApply"}


def examples(layer: Layer) -> tuple[Any, Any]:
    """The layer of its example in Linen, and what it becomes."""
    names = {"nnx": nnx, "nnm": nnm, "nn": linen, "jnp": jnp, "train": False, "in_features": 8}
    names |= {"in_shape": (2, 4, 8), "rngs": nnx.Rngs(0)}
    return eval(layer.example.before, names), eval(layer.example.after, names)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_the_fields_are_linens_in_linens_order(layer: Layer) -> None:
    found = dataclasses.fields(getattr(linen, layer.name))
    fields = [one for one in found if one.init and one.name not in PLACEMENT]
    needed = (dataclasses.MISSING, dataclasses.MISSING)
    assert layer.fields == tuple(one.name for one in fields)
    assert layer.required_fields == tuple(
        one.name for one in fields if (one.default, one.default_factory) == needed
    )


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_a_call_of_linens_takes_what_moves_there(layer: Layer) -> None:
    parameters = inspect.signature(getattr(linen, layer.name).__call__).parameters
    assert set(layer.at_call) <= set(parameters)


def kept() -> Iterator[tuple[str, str, str]]:
    for layer in LAYERS.values():
        for field, attribute in (layer.attributes or {}).items():
            yield layer.name, field, attribute


@pytest.mark.parametrize(("name", "field", "attribute"), list(kept()))
def test_a_built_layer_keeps_the_field(name: str, field: str, attribute: str) -> None:
    before, after = examples(LAYERS[name])
    assert getattr(after, attribute) == getattr(before, field)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (linen.Dense(2, **DTYPES), nnx.Linear(8, 2, **DTYPES, rngs=RNGS)),
        (linen.Conv(2, (3,), **DTYPES), nnx.Conv(8, 2, (3,), **DTYPES, rngs=RNGS)),
        (
            linen.ConvTranspose(2, (3,), **DTYPES),
            nnx.ConvTranspose(8, 2, (3,), **DTYPES, rngs=RNGS),
        ),
        (linen.LayerNorm(**DTYPES), nnx.LayerNorm(8, **DTYPES, rngs=RNGS)),
        (linen.LayerNorm(**DTYPES), nnm.LayerNorm(**DTYPES, in_features=8, rngs=RNGS)),
        (linen.RMSNorm(**DTYPES), nnx.RMSNorm(8, **DTYPES, rngs=RNGS)),
        (linen.BatchNorm(**DTYPES), nnx.BatchNorm(8, **DTYPES, rngs=RNGS)),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_layer_keeps_the_dtypes_that_it_is_given(before: linen.Module, after: nnx.Module) -> None:
    known = LAYERS[type(before).__name__].attributes
    assert known is not None
    assert {"dtype", "param_dtype"} <= known.keys()
    for field, dtype in DTYPES.items():
        assert getattr(after, field) is getattr(before, field) is dtype


@pytest.mark.parametrize("name", [name for name, layer in LAYERS.items() if layer.variables])
def test_a_built_layer_has_its_variables_and_no_others(name: str) -> None:
    _, after = examples(LAYERS[name])
    found = {str(path[0]) for path, _ in nnx.to_flat_state(nnx.state(after))}
    assert found
    assert found <= set(LAYERS[name].variables)


@pytest.mark.parametrize("name", [name for name, layer in LAYERS.items() if layer.is_one_class])
def test_a_layer_of_one_class_is_built_as_that_class(name: str) -> None:
    _, after = examples(LAYERS[name])
    names = {"nnx": nnx, "nnm": nnm}
    assert type(after) is eval(LAYERS[name].target, names)
