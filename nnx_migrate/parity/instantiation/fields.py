"""Carry a Linen module's fields from the before side to the after side, as plain bytes.

The two sides are different processes with packages of the same names, so everything crosses by
qualified name and is looked up again on the other side: classes, functions, enum members,
dataclass configs, partials, any object that pickles. Three kinds need more than pickle:

* a Linen module crosses as its class, its fields and its scope path (:func:`build_module`);
* a local function or lambda (``nn.initializers.normal(0.02)``) crosses as its code, its closure and
  the name of the module that gives it its globals;
* Linen's partitioning wrappers cross as the wrapped initialiser and the names.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import marshal
import pickle
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from flax import linen
from flax.core import FrozenDict

from nnx_migrate.parity.case import BadCase
from nnx_migrate.parity.instantiation.calls import Call, qualified_name, record_calls
from nnx_migrate.parity.instantiation.local_classes import is_local, place_of


class CannotCross(BadCase):
    """A field cannot reach the other side; the message is one line for the user."""


@dataclass(frozen=True)
class Description:
    """What the after side needs to build the migrated twin of a Linen module.

    ``payload`` is the pickled module; ``shared_objects`` holds objects passed by identity, only in one
    process.
    """

    class_name: str
    payload: bytes
    calls: tuple[Call, ...]
    shared_objects: tuple[Any, ...] = ()


def describe(
    module: linen.Module,
    inputs: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    rng_names: Sequence[str] = (),
    method: str | Callable[..., Any] | None = None,
    *,
    same_process: bool = False,
) -> Description:
    """Describe a Linen module and trace its initial call.

    With ``same_process`` what has no Linen in it (functions, classes, configs) is kept by identity,
    so local classes and lambdas cross too. Raises :class:`CannotCross` naming the field.
    """
    calls = record_calls(module, inputs, kwargs or {}, rng_names, method)
    paths = dict(_module_paths(module, ()))
    try:
        payload, shared_objects = _pickle(module, paths, same_process)
    except (*_PICKLING_ERRORS, CannotCross) as error:
        raise CannotCross(_blame(module, paths, same_process, error)) from error
    return Description(qualified_name(type(module)), payload, calls, shared_objects)


def changed_fields(module: linen.Module) -> dict[str, Any]:
    """Return the fields that differ from the class's defaults; the others stay at the default.

    ``parent`` and ``name`` are Linen's own and never cross.
    """
    return {
        field.name: getattr(module, field.name)
        for field in dataclasses.fields(module)
        if field.init and field.name not in ("parent", "name")
        if not _is_default(field, getattr(module, field.name))
    }


def build_module(*_: Any) -> Any:
    """Stand for a Linen module in a payload; the reading side puts its own builder here."""
    raise CannotCross("a module description was read outside a build")


def local_class(*_: Any) -> Any:
    """Stand for a class local to a function; the reading side puts its own look-up here."""
    raise CannotCross("a module description was read outside a build")


def make_function(module: str, name: str, code: bytes, free: int) -> types.FunctionType:
    """Rebuild a local function from its code; its globals are those of the named module."""
    cells = tuple(types.CellType() for _ in range(free))
    namespace = vars(importlib.import_module(module))
    return types.FunctionType(marshal.loads(code), namespace, name, None, cells)


def fill_function(function: types.FunctionType, state: tuple[Any, ...]) -> None:
    """Give a rebuilt function its closure and its defaults."""
    contents, function.__defaults__, function.__kwdefaults__ = state
    for cell, content in zip(function.__closure__ or (), contents, strict=True):
        cell.cell_contents = content


def partition_initializer(kind: str, initializer: Any, names: Any, mesh: Any, rules: Any) -> Any:
    """Wrap an initialiser as rewritten code does where Linen code has ``nn.<kind>``."""
    from nnx_migrate import nn

    if kind == "with_partitioning":
        return nn.with_partitioning(initializer, names, mesh)
    return nn.with_logical_partitioning(initializer, names, mesh, rules)


def make_mesh(ids: Any, axis_names: Any, axis_types: Any) -> jax.sharding.Mesh:
    """Rebuild a mesh over the devices of the same ids."""
    by_id = {device.id: device for device in jax.devices()}
    devices = np.vectorize(by_id.__getitem__, otypes=[object])(ids)
    return jax.sharding.Mesh(devices, axis_names, axis_types=axis_types)


# What pickle raises for things it cannot carry; all three are documented.
_PICKLING_ERRORS = (pickle.PicklingError, AttributeError, TypeError, RecursionError)
_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic, np.ndarray)


class _FieldPickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, paths: Mapping[int, tuple[str, ...]], keep: bool) -> None:
        super().__init__(file, protocol=4)
        self._paths = paths
        self._keep = keep
        self.kept: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        if not self._keep or not _has_no_linen(value):
            return None
        self.kept.append(value)
        return len(self.kept) - 1

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, linen.Module):
            place, path = place_of(type(value)), self._paths.get(id(value))
            return build_module, (*place, changed_fields(value), path)
        if isinstance(value, FrozenDict):
            return dict, (value.unfreeze(),)  # Linen froze it; callers of NNX pass a dict
        if isinstance(value, jax.sharding.Mesh):
            ids = np.vectorize(lambda device: device.id)(value.devices)
            return make_mesh, (ids, value.axis_names, value.axis_types)
        if isinstance(value, type) and is_local(place_of(value)[1]):
            return local_class, place_of(value)
        if isinstance(value, type) or not callable(value):
            return NotImplemented
        name = _global_name(value)
        if name is not None:
            return name
        return _reduce_function(value) if isinstance(value, types.FunctionType) else NotImplemented


def _pickle(
    value: Any, paths: Mapping[int, tuple[str, ...]], keep: bool
) -> tuple[bytes, tuple[Any, ...]]:
    file = io.BytesIO()
    pickler = _FieldPickler(file, paths, keep)
    pickler.dump(value)
    return file.getvalue(), tuple(pickler.kept)


def _reduce_function(function: types.FunctionType) -> Any:
    """Reduce a function that no module knows by name."""
    module, code = function.__globals__["__name__"], function.__code__
    contents = tuple(cell.cell_contents for cell in function.__closure__ or ())
    if module.startswith("flax."):
        closure = dict(zip(code.co_freevars, contents, strict=True))
        kind = code.co_qualname.split(".")[0]
        if kind in ("with_partitioning", "with_logical_partitioning"):
            parts = (closure.get(name) for name in ("fn", "names", "mesh", "rules"))
            return partition_initializer, (kind, *parts)
        raise CannotCross(f"a function made inside {module}.{code.co_qualname}")
    arguments = (module, function.__name__, marshal.dumps(code), len(contents))
    state = (contents, function.__defaults__, function.__kwdefaults__)
    return make_function, arguments, state, None, None, fill_function


def _global_name(value: Any) -> str | None:
    """Return the dotted name under which the value's own module knows it, if it does."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str) or "<" in name:
        return None
    found: Any = importlib.import_module(module) if module != "builtins" else None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is value else None


def _has_no_linen(value: Any) -> bool:
    """Whether a value can be handed over by identity within one process."""
    if isinstance(value, (*_PLAIN, list, tuple, dict, set, linen.Module)):
        return False
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return False
    if isinstance(value, types.FunctionType) and value is not build_module:
        return not value.__globals__["__name__"].startswith("flax.")
    if isinstance(value, type):
        return not issubclass(value, linen.Module) and value.__module__ != "builtins"
    return False


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is value:
        return True
    return (
        type(field.default) is type(value)
        and isinstance(value, _PLAIN[:6])
        and (field.default == value)
    )


def _module_paths(
    module: linen.Module, path: tuple[str, ...]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield ``(id, scope path)`` of a module and of the modules in its fields."""
    yield id(module), path
    for field in dataclasses.fields(module):
        if field.name not in ("parent", "name"):
            yield from _paths_in(getattr(module, field.name, None), path, field.name)


def _paths_in(
    value: Any, path: tuple[str, ...], name: str
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Walk the containers Linen walks: ``layers_0`` for a sequence, ``layers_key`` for a dict."""
    if isinstance(value, linen.Module):
        yield from _module_paths(value, (*path, value.name or name))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _paths_in(item, path, f"{name}_{index}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _paths_in(item, path, f"{name}_{key}")


def _blame(
    module: linen.Module, paths: Mapping[int, tuple[str, ...]], keep: bool, error: Exception
) -> str:
    """Name the field that does not cross and say what to do."""
    cls = qualified_name(type(module))
    for name, value in changed_fields(module).items():
        try:
            _pickle(value, paths, keep)
        except (*_PICKLING_ERRORS, CannotCross) as why:
            return (
                f"field {name!r} of {cls} (a {type(value).__name__}) cannot cross to the after "
                f"side ({why}): define nnx(rngs) in the case file"
            )
    return f"{cls} cannot cross to the after side ({error}): define nnx(rngs) in the case file"
