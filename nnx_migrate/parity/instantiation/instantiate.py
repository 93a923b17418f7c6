"""Build the migrated twin of a Linen module: its fields, the sizes its trace shows, and ``rngs``."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from flax import linen, nnx

from nnx_migrate.linen import Module as LazyModule
from nnx_migrate.linen import lazy
from nnx_migrate.model import ClassMap, MigrationMap
from nnx_migrate.nn.variables.sharing import definitions_in
from nnx_migrate.parity.instantiation import fields
from nnx_migrate.parity.instantiation.fields import CannotCross, Description
from nnx_migrate.parity.instantiation.local_classes import find_local, is_local, stated_class
from nnx_migrate.parity.instantiation.migration_map import class_map_of
from nnx_migrate.parity.instantiation.sizing import parameters_of, sizes_for


def instantiate(
    migrated_class: Callable[..., Any],
    linen_module: linen.Module,
    inputs: Sequence[Any],
    rngs: nnx.Rngs,
    *,
    kwargs: Mapping[str, Any] | None = None,
    map: MigrationMap | None = None,
    method: str | Callable[..., Any] | None = None,
) -> Any:
    """Construct ``migrated_class`` as ``linen_module`` is, in this process.

    ``inputs`` and ``kwargs`` are those of the initial call: sizes that Linen inferred from them are
    passed as the keyword arguments the migration map names, or, without a map, as
    ``in_features``, ``<argument>_features`` and ``<argument>_shape``. Module-valued fields are
    built too. Raises :class:`CannotCross` (one line) when a field or a size cannot be found.
    """
    description = fields.describe(linen_module, inputs, kwargs, method=method, same_process=True)
    return build(description, rngs, map=map, root=migrated_class)


def build(
    description: Description,
    rngs: nnx.Rngs,
    *,
    map: MigrationMap | None = None,
    root: Callable[..., Any] | None = None,
) -> Any:
    """Construct the migrated module of a description; classes come from this process's modules.

    ``root`` replaces the class of the outermost module. Raises :class:`CannotCross`.
    """
    return _Builder(description, rngs, map or MigrationMap(), root).load()


class _Builder(pickle.Unpickler):
    """Read a payload, with Linen's names resolved to their NNX counterparts."""

    def __init__(
        self,
        description: Description,
        rngs: nnx.Rngs,
        map: MigrationMap,
        root: Callable[..., Any] | None,
    ) -> None:
        super().__init__(io.BytesIO(description.payload))
        self._description = description
        self._rngs = rngs
        self._maps = {entry.linen: entry for entry in map.classes}
        self._root = root

    def persistent_load(self, index: Any) -> Any:
        return self._description.shared_objects[index]

    def find_class(self, module: str, name: str) -> Any:
        if module == fields.__name__:
            own = {"build_module": self._build_module, "local_class": self.find_class}
            return own.get(name) or getattr(fields, name)
        if module == "jax._src.array":  # of an array that a field holds
            return _eager(find(module, name))
        if module == "flax.linen" or module.startswith("flax.linen."):
            return counterpart(module, name, lazily=self._is_lazy)
        entry = class_map_of(self._maps, f"{module}.{name}")
        if self._root is not None and f"{module}.{name}" == self._description.class_name:
            return self._root
        return find(*_place(entry, name)) if entry else find(module, name)

    @functools.cached_property
    def _is_lazy(self) -> bool:
        """Whether the migrated model is of the lazy form: then Linen's own layers in it are too."""
        if self._root is not None:
            return issubclass_of_lazy(self._root)
        module, _, name = self._description.class_name.rpartition(".")
        return issubclass_of_lazy(self.find_class(module, name))

    def _build_module(
        self,
        module: str,
        name: str,
        values: Mapping[str, Any],
        path: tuple[str, ...] | None,
    ) -> Any:
        linen_class = f"{module}.{name}"
        entry = class_map_of(self._maps, linen_class)
        cls = stated_class(self.find_class(module, name), name)
        if isinstance(cls, type) and issubclass(cls, linen.Module):
            raise CannotCross(
                f"{linen_class} is still a Linen class on the after side: rewrite it, or define "
                "nnx(rngs) in the case file"
            )
        arguments = _arguments(cls, linen_class, values, entry)
        if issubclass_of_lazy(cls):
            return cls(**arguments)
        sizes, missing = sizes_for(
            cls, arguments, entry, self._description.calls, path, linen_class
        )
        if missing:
            raise CannotCross(
                f"{linen_class}: the initial call does not show the constructor argument(s) "
                f"{', '.join(missing)}: pass map=FILE, or define nnx(rngs) in the case file"
            )
        if _accepts(parameters_of(cls), "rngs"):
            arguments["rngs"] = self._rngs
        module = cls(**arguments, **sizes)
        if not (isinstance(module, nnx.Module) and definitions_in(module)):
            return module
        arguments.pop("rngs", None)
        return lazy(cls)(**arguments, **sizes)  # which the first call builds, with what it holds


def _arguments(
    cls: Callable[..., Any],
    linen_class: str,
    values: Mapping[str, Any],
    entry: ClassMap | None,
) -> dict[str, Any]:
    """Name the field values as the constructor does; refuse a field it does not take."""
    parameters = parameters_of(cls)
    names = entry.fields if entry else {}
    arguments = {names.get(name, name): value for name, value in values.items()}
    unknown = [name for name in arguments if not _accepts(parameters, name)]
    if unknown:
        raise CannotCross(
            f"{linen_class}: the migrated constructor takes no {', '.join(unknown)} (it takes "
            f"{', '.join(parameters)}): pass map=FILE, or define nnx(rngs) in the case file"
        )
    return arguments


def _eager(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes arrays, none of them traced where the module is built under a trace."""

    def made(*args: Any) -> Any:
        with jax.ensure_compile_time_eval():
            return function(*args)

    return made


def _accepts(parameters: Mapping[str, inspect.Parameter], name: str) -> bool:
    return name in parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def issubclass_of_lazy(cls: Any) -> bool:
    """Whether a migrated class is of the lazy form: it takes Linen's fields, and no sizes."""
    return isinstance(cls, type) and issubclass(cls, LazyModule)


def counterpart(module: str, name: str, *, lazily: bool = False) -> Any:
    """Return what a ``flax.linen`` class or function becomes; in a lazy model its lazy twin.

    Classes become the factory of the same name (Linen's signature plus sizes and ``rngs``).
    Functions come from ``nnx_migrate.nn``, ``flax.nnx`` or ``jax.nn``, in that order. Raises
    :class:`CannotCross` when there is none.
    """
    original = getattr(importlib.import_module(module), name, None)
    if original is None:
        raise CannotCross(
            f"{module}.{name} is a class that a transformation made: define nnx(rngs)"
        )
    if lazily and hasattr(_optional("nnx_migrate.linen"), name):
        return getattr(_optional("nnx_migrate.linen"), name)
    if isinstance(original, type):
        places: tuple[Any, ...] = (_optional("nnx_migrate.nn.building.factory"),)
    else:
        places = (_optional("nnx_migrate.nn"), nnx, jax.nn, jax.nn.initializers)
    for place in places:
        found = getattr(place, name, None)
        if found is not None:
            return found
    raise CannotCross(f"flax.linen.{name} has no counterpart in nnx_migrate.nn or flax.nnx")


def find(module: str, name: str) -> Any:
    """Import a qualified name on this side. Raises :class:`CannotCross` when it is not there."""
    if is_local(name):
        return find_local(module, name)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise CannotCross(f"the after side has no module {module} ({error})") from error
    where = getattr(found, "__file__", None) or module
    for part in name.split("."):
        if not hasattr(found, part):
            names_by_lower_case = {word.lower(): word for word in dir(found)}
            near = difflib.get_close_matches(part.lower(), names_by_lower_case, n=1)
            hint = f" (nearest: {names_by_lower_case[near[0]]})" if near else ""
            raise CannotCross(f"the after side has no {name!r} in {where}{hint}")
        found = getattr(found, part)
    return found


def _place(entry: ClassMap, name: str) -> tuple[str, str]:
    """Module and name of a migrated class; nested and local ones have a name of several parts."""
    if entry.nnx.endswith(f".{name}"):
        return entry.nnx[: -len(name) - 1], name
    module, _, last = entry.nnx.rpartition(".")
    return module, last


def _optional(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return None
