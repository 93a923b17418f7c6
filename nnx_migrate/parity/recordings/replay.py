"""Rebuild a recorded module and its call: fields as they were, arrays of the recorded shapes.

No value of an array is ever recorded. Floats are normal, booleans even; integers are 0 or 1, the
only ones that are certainly below every vocabulary and length, and 1 in arrays of rank 1 or 0,
which are mostly lengths and steps.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nnx_migrate.evidence.values import EncodedValue, children, kind_of
from nnx_migrate.parity.instantiation.local_classes import (
    find_local,
    is_local,
    recorded_arguments,
    stated_class,
)


class CannotReplay(Exception):
    """Something recorded cannot be built again; the message is one line."""


class Replay:
    """One recorded instance, read from the JSON file that its case was written with."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        self._fields: EncodedValue = content["fields"]
        self._inputs: Mapping[str, EncodedValue] = content["inputs"]
        self._argument_kinds: Mapping[str, str] = content["passed"]
        self._initial: Mapping[str, Mapping[str, EncodedValue]] = content["initial"]
        self._generator = np.random.default_rng(0)
        if content["around"] is not None:
            module, function, arguments = content["around"]
            recorded_arguments(module, function, json.dumps(arguments), self._argument)

    def linen(self) -> Any:
        """The Linen module."""
        return self._value(self._fields)

    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, as the recorded call passed them; where that is not known, by name."""
        return self._arguments(self._inputs, self._argument_kinds)

    def initial(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that the module was initialised with."""
        return self._arguments(self._initial["inputs"], self._initial["passed"])

    def _arguments(
        self, inputs: Mapping[str, EncodedValue], argument_kinds: Mapping[str, str]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        order = {name: number for number, name in enumerate(argument_kinds)}
        for name in sorted(inputs, key=lambda one: order.get(one, len(order))):
            value = self._value(inputs[name])
            match argument_kinds.get(name, "keyword"):
                case "position":
                    args.append(value)
                case "star":
                    args.extend(value)
                case "keywords":
                    kwargs.update(value)
                case _:
                    kwargs[name] = value
        return tuple(args), kwargs

    def _argument(self, text: str) -> dict[str, Any]:
        """Arguments of the function around a local class; none that Linen itself makes."""
        items = json.loads(text).items()
        return {name: self._value(one) for name, one in items if not _names_flax(one)}

    def _value(self, value: EncodedValue) -> Any:
        match kind_of(value):
            case "plain":
                return value
            case "float":
                return float(value["value"])
            case "text":
                return value["value"]
            case "tuple":
                return tuple(self._value(item) for item in value["items"])
            case "list":
                return [self._value(item) for item in value["items"]]
            case "set":
                kind = frozenset if value["frozen"] else set
                return kind(self._value(item) for item in value["items"])
            case "dict":
                return {name: self._value(item) for name, item in value["items"]}
            case "dtype":
                return jnp.dtype(value["name"])
            case "name":
                return self._find(value)
            case "enum":
                return self._find(value)[value["member"]]
            case "module":  # each class was recorded alone, inside what lifts it
                return stated_class(self._find(value), value["name"])(**self._parts(value))
            case "dataclass" | "call":
                return self._find(value)(**self._parts(value))
            case "partial":
                items = [self._value(item) for item in value["items"]]
                function = self._value(value["function"])
                return functools.partial(function, *items, **self._parts(value))
            case "array":
                return self._array(tuple(value["shape"]), jnp.dtype(value["dtype"]))
            case "key":
                return self._key(tuple(value["shape"]))
            case kind:
                raise CannotReplay(f"a recorded value of kind {kind}")

    def _parts(self, value: EncodedValue) -> dict[str, Any]:
        parts = value["fields"].items()
        return {name: self._value(item) for name, item in parts if kind_of(item) != "default"}

    def _find(self, value: EncodedValue) -> Any:
        if is_local(value["name"]):
            return find_local(value["module"], value["name"])
        found: Any = importlib.import_module(value["module"])
        for part in value["name"].split("."):
            found = getattr(found, part)
        return found

    def _array(self, shape: tuple[int, ...], dtype: Any) -> Any:
        if jnp.issubdtype(dtype, jnp.inexact):
            return jnp.asarray(self._generator.normal(size=shape), dtype)
        if len(shape) < 2 and not jnp.issubdtype(dtype, jnp.bool_):
            return jnp.ones(shape, dtype)
        return jnp.asarray(self._generator.integers(0, 2, size=shape), dtype)

    def _key(self, shape: tuple[int, ...]) -> Any:
        key = jax.random.key(0)
        return jax.random.split(key, shape) if shape else key


def _names_flax(value: EncodedValue) -> bool:
    """Whether a value is a module or names something of flax: Linen is not for the after side."""
    if isinstance(value, Mapping) and str(value.get("module", "")).startswith("flax"):
        return True
    return kind_of(value) == "module" or any(_names_flax(one) for one in children(value))
