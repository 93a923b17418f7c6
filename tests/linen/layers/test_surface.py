"""Names, signatures and fields are Linen's."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from typing import Any

import pytest

MODULES = [
    "activation",
    "attention",
    "batch_apply",
    "combinators",
    "dtypes",
    "fp8_ops",
    "initializers",
    "linear",
    "normalization",
    "partitioning",
    "pooling",
    "recurrent",
    "spmd",
    "stochastic",
    "experimental.layers_with_named_axes",
]


def sides(module: str) -> tuple[Any, Any]:
    return tuple(
        importlib.import_module(f"{home}.{module}") for home in ("flax.linen", "nnx_migrate.linen")
    )  # type: ignore[return-value]


def own(module: str, kind: Any) -> list[str]:
    linen, _ = sides(module)
    return [
        name
        for name, value in sorted(vars(linen).items())
        if kind(value)
        and getattr(value, "__module__", "") == linen.__name__
        and not name.startswith("_")
    ]


CLASSES = [(module, name) for module in MODULES for name in own(module, inspect.isclass)]
FUNCTIONS = [(module, name) for module in MODULES for name in own(module, inspect.isfunction)]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_flax_is_there(module):
    linen, lazy = sides(module)
    public = [name for name in dir(linen) if not name.startswith("_")]
    assert [name for name in public if not hasattr(lazy, name)] == []


def test_every_public_name_of_the_package_is_there():
    linen, lazy = (importlib.import_module(home) for home in ("flax.linen", "nnx_migrate.linen"))
    public = [name for name in dir(linen) if not name.startswith("_")]
    # What flax's package happens to have loaded.
    loaded = {name for name in public if inspect.ismodule(getattr(linen, name))} - {"meta"}
    assert [name for name in public if not hasattr(lazy, name) and name not in loaded] == []
    for name in loaded:
        importlib.import_module(f"nnx_migrate.linen.{name}")


def test_a_star_import_gives_what_flax_gives():
    for module in MODULES:
        linen, lazy = sides(module)
        public = {name for name in dir(linen) if not name.startswith("_")} - {"annotations"}
        assert public <= set(getattr(lazy, "__all__", dir(lazy))), module


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_a_class_has_linens_fields_and_methods(module, name):
    linen, lazy = (getattr(side, name) for side in sides(module))
    assert linen.__name__ == lazy.__name__
    if dataclasses.is_dataclass(linen):
        assert described_fields(linen) == described_fields(lazy)
        assert described_signature(linen) == described_signature(lazy)
    methods = [
        key
        for key, value in vars(linen).items()
        if inspect.isfunction(value) and (key == "__call__" or not key.startswith("_"))
    ]
    for method in methods:
        assert described_signature(getattr(linen, method)) == described_signature(
            getattr(lazy, method)
        ), method


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_a_function_has_linens_signature(module, name):
    linen, lazy = (getattr(side, name) for side in sides(module))
    assert described_signature(linen) == described_signature(lazy)


def described_fields(kind: Any) -> list[Any]:
    return [
        (field.name, told(field.default), told(field.default_factory), field.init)
        for field in dataclasses.fields(kind)
    ]


def described_signature(function: Any) -> list[Any]:
    # Linen does not mind parent and name by position; nobody gives them so.
    anyhow = ("parent", "name")
    return [
        (one.name, None if one.name in anyhow else one.kind, told(one.default))
        for one in inspect.signature(function).parameters.values()
    ]


def told(value: Any) -> Any:
    """A default so that it can be compared: functions by what they are called, both kinds of maps alike."""
    if hasattr(value, "__qualname__"):
        return NAMES.get(value.__qualname__, value.__qualname__)
    if type(value).__name__ in ("_Sentinel", "UnspecifiedParent"):
        return "unspecified"
    text = repr(value)
    return "{}" if text == "FrozenDict({})" else text.split(" object at ")[0]


# Functions of ours that Linen has under another name.
NAMES = {"concatenate_features": "_concatenate"}
