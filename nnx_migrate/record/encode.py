"""Write fields and call arguments down as :mod:`nnx_migrate.evidence.values` says; never values of
arrays, and no string that is not in the source code already."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import json
import math
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import linen

from nnx_migrate.evidence.statements import statement_name
from nnx_migrate.evidence.values import EncodedValue, unreadable

_DEEPEST = 12
_NESTED = 2  # config objects inside a config object
_LONGEST = 256  # items of a container beyond this are data, not structure

# What a module's field becomes: not its own, Linen's.
PLACEMENT = ("parent", "name")


@dataclasses.dataclass(frozen=True)
class Encoder:
    """How much may be written down: strings and attributes that occur in the source code."""

    has_text: Callable[[str], bool]
    has_word: Callable[[str], bool]
    has_keyword: Callable[[str], bool]

    def __call__(self, value: Any, depth: int = 0) -> EncodedValue:
        """The JSON form of a value."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return {**_named("enum", type(value)), "member": value.name}
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"$": "float", "value": str(value)}
        if isinstance(value, str):
            return self._text(value)
        if is_array(value):
            return _array(value)
        if depth > _DEEPEST:
            return opaque(value)
        return self._compound(value, depth + 1)

    def _text(self, value: str) -> EncodedValue:
        public = hasattr(jax.nn, value) or hasattr(jax.numpy, value)
        if self.has_text(value) or public or value in _initialiser_texts():
            return {"$": "text", "value": str(value)}
        return {"$": "withheld", "length": len(value)}

    def _compound(self, value: Any, depth: int) -> EncodedValue:
        if isinstance(value, linen.Module):
            return self._with_fields("module", value, module_fields(value), depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
            return self._with_fields("dataclass", value, fields, depth)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            named: Any = value
            return self._with_fields("dataclass", value, named._asdict(), depth)
        if isinstance(value, tuple | list) and len(value) <= _LONGEST:
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {"$": kind, "items": [self(item, depth) for item in value]}
        if isinstance(value, set | frozenset) and len(value) <= _LONGEST:
            items = sorted((self(item, depth) for item in value), key=json.dumps)
            return {"$": "set", "items": items, "frozen": isinstance(value, frozenset)}
        if isinstance(value, Mapping) and len(value) <= _LONGEST:
            return self._mapping(value, depth)
        if isinstance(value, functools.partial):
            return {
                "$": "partial",
                "function": self(value.func, depth),
                "items": [self(item, depth) for item in value.args],
                "fields": {name: self(item, depth) for name, item in value.keywords.items()},
            }
        return self._other(value, depth)

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> EncodedValue:
        names = [name for name in value if isinstance(name, int) or self._is_in_source(name)]
        if len(names) != len(value):
            return opaque(value)
        return {"$": "dict", "items": [[name, self(item, depth)] for name, item in value.items()]}

    def _is_in_source(self, name: Any) -> bool:
        searches = (self.has_text, self.has_word, self.has_keyword)
        return isinstance(name, str) and any(knows(name) for knows in searches)

    def _other(self, value: Any, depth: int) -> EncodedValue:
        name = qualified_name(value)
        if name is not None:
            return {"$": "name", "module": name[0], "name": name[1]}
        if isinstance(value, np.dtype):
            return {"$": "dtype", "name": value.name}
        if isinstance(value, types.FunctionType):
            return self._made_function(value, depth)
        numbers = self._numbers_of(value)
        if numbers:
            return {**_named("object", type(value)), "fields": numbers}
        return opaque(value)

    def _with_fields(
        self, kind: str, value: Any, fields: Mapping[str, Any], depth: int
    ) -> EncodedValue:
        encodings = {name: self(item, depth) for name, item in fields.items()}
        for name, item in fields.items():
            is_default = getattr(type(value), name, fields) is item
            if is_default and any(unreadable(encodings[name])):
                encodings[name] = {"$": "default"}
        return {**_named(kind, type(value)), "fields": encodings}

    def _made_function(self, value: types.FunctionType, depth: int) -> EncodedValue:
        """What ``maker(...)`` returned, when calling it again with its closure gives the same."""
        found = made_by(value)
        if found is None:
            return opaque(value)
        maker, arguments = found
        fields = {name: self(item, depth) for name, item in arguments.items()}
        return {"$": "call", "module": maker[0], "name": maker[1], "fields": fields}

    def _numbers_of(self, value: Any, depth: int = _NESTED) -> dict[str, EncodedValue]:
        """Numbers that a config object holds under names that the code reads.

        Also in lists of numbers and in the config objects that it holds, which come last.
        """
        attributes = getattr(value, "__dict__", None)
        if not isinstance(attributes, dict) or callable(value) or inspect.ismodule(value):
            return {}
        read = {name: item for name, item in attributes.items() if self.has_word(name)}
        plain = {n: self(item, _DEEPEST - 1) for n, item in read.items() if _holds_numbers(item)}
        inner = {
            name: {**_named("object", type(item)), "fields": numbers}
            for name, item in read.items()
            if depth and name not in plain
            for numbers in (self._numbers_of(item, depth - 1),)
            if numbers
        }
        return {**plain, **inner}


@functools.lru_cache
def _initialiser_texts() -> frozenset[str]:
    """Strings that jax's own initialisers know (``fan_in``, ``truncated_normal``)."""
    file = inspect.getsourcefile(jax.nn.initializers.variance_scaling)
    tree = ast.parse(Path(file).read_text(encoding="utf-8")) if file else ast.parse("")
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(one for one in constants if isinstance(one, str) and one.isidentifier())


def _holds_numbers(value: Any) -> bool:
    """Whether a value is a number or a plain list of some."""
    if type(value) in (list, tuple) and 0 < len(value) <= _LONGEST:
        return all(isinstance(one, bool | int | float) for one in value)
    return isinstance(value, bool | int | float)


def is_array(value: Any) -> bool:
    """Whether a value has a shape and a dtype: an array, a tracer, an abstract array."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def module_fields(module: linen.Module) -> dict[str, Any]:
    """The constructor fields of a Linen module that are its own."""
    return {
        field.name: getattr(module, field.name)
        for field in dataclasses.fields(module)
        if field.init and field.name not in PLACEMENT
    }


def qualified_name(value: Any) -> tuple[str, str] | None:
    """Module and qualified name under which importing finds exactly this class or function."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    name = name or getattr(value, "__name__", None)
    if name == "<lambda>":
        name = _global_of(value)
    for home in _homes(module):
        if isinstance(name, str) and "<" not in name and find(home, name) is value:
            return importable(home), name
    return None


def _global_of(function: Any) -> str | None:
    """The name that its own module gives a lambda: ``identity = lambda x: x``."""
    names = vars(sys.modules.get(function.__module__, types.ModuleType("none")))
    return next((name for name, value in names.items() if value is function), None)


def _homes(module: Any) -> list[str]:
    """Public places first: private modules of jax move between versions."""
    homes = ["jax.numpy", "jax.nn", "jax.nn.initializers", "jax.lax", "flax.linen"]
    if not isinstance(module, str):
        return homes
    return [*homes, module] if module.startswith(("jax", "flax")) else [module]


def find(module: str, name: str) -> Any:
    """What a qualified name stands for; None when it is not there."""
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def made_by(function: types.FunctionType) -> tuple[tuple[str, str], dict[str, Any]] | None:
    """The function that made a closure and the arguments that make an equal one, if there are."""
    maker_name, inner, _ = function.__qualname__.rpartition(".<locals>.")
    if not inner or "<" in maker_name:
        return None
    maker = find(function.__module__, maker_name)
    if not callable(maker):
        return None
    closure = dict(zip(function.__code__.co_freevars, _contents(function), strict=True))
    try:
        names = inspect.signature(maker).parameters
        arguments = {name: closure[name] for name in names if name in closure}
        again = maker(**arguments)
    except Exception:  # noqa: BLE001 - a function of the user's that does not take its closure
        return None
    same = getattr(again, "__code__", None) is function.__code__
    place = qualified_name(maker)
    return (place, arguments) if same and place and _same_closure(function, again) else None


def _contents(function: types.FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]


def _same_closure(one: types.FunctionType, two: types.FunctionType) -> bool:
    pairs = zip(_contents(one), _contents(two), strict=True)
    return all(a is b or (type(a) is type(b) and not is_array(a) and a == b) for a, b in pairs)


def _array(value: Any) -> EncodedValue:
    shape = [int(size) for size in value.shape]
    if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        return {"$": "key", "shape": shape}
    return {"$": "array", "shape": shape, "dtype": str(value.dtype)}


def _named(kind: str, cls: type) -> dict[str, Any]:
    return {"$": kind, "module": importable(cls.__module__), "name": statement_name(cls)}


def importable(module: str) -> str:
    """The name under which another process imports a module: a script goes by its file."""
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    file = getattr(main, "__file__", None)
    return str(spec.name) if spec else Path(file).stem if file else module


def opaque(value: Any) -> EncodedValue:
    """What is written down of a value that is not understood: its type."""
    return {"$": "opaque", "type": type(value).__qualname__}
