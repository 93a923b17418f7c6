"""What code around finds inside an explicit module that it uses as Linen's: ``bound.encoder(x)``.

A function that is given to ``apply`` reads submodules and parameters of the bound module. Each read,
call and ``apply`` is one of the explicit module with the variables that the scope holds, so nothing has
to be kept in step.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from inspect import isfunction
from typing import Any, Protocol

from flax import config, nnx
from flax.core import FrozenDict
from flax.core.meta import unbox

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.lazy_submodule_views import LazySubmoduleView
from nnx_migrate.linen.core.sizes.arrays import shapes_in
from nnx_migrate.nn.variables import errors
from nnx_migrate.nn.variables.sharing import is_lazy, linen_place
from nnx_migrate.nn.variables.variables import collection_of

Path = tuple[Any, ...]  # attributes, and items of lists and dicts
Place = tuple[str, ...]  # in Linen's variables
Shapes = tuple[tuple[int, ...], ...]
_NOTHING = object()
_NOT_HELD = (
    errors.ScopeCollectionNotFound,
    errors.ScopeParamNotFoundError,
    errors.ScopeVariableNotFoundError,
)


class Owner(Protocol):
    """The explicit class in a scope of lazy code: `explicit_calls.ExplicitCalls`."""

    def with_part(
        self, function: Callable[[Any], Any], part: Path, calls: bool, input_shapes: Shapes = ()
    ) -> Any:
        """A function of the explicit module that reads one part of it, or calls it."""

    def abstract(self, input_shapes: Shapes = ()) -> Any:
        """The explicit module without values."""

    def scope_variables(self) -> dict[str, Any]:
        """The variables that the scope holds, by collection."""


class SubmoduleView:
    """A submodule of an explicit module: it can be called, applied and read, as Linen's can."""

    def __init__(self, owner: Owner, path: Path) -> None:
        self._owner = owner
        self._path = path

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the submodule, with the keys and variables of the running call."""
        return call(self._owner, self._path, "__call__", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """A submodule, parameter, method or value of the submodule."""
        return read(self._owner, self._path, name)

    @property
    def variables(self) -> Any:
        """The variables at its path, by collection."""
        below = place_of(self._owner.abstract(), self._path)
        found = {name: _below(tree, below) for name, tree in self._owner.scope_variables().items()}
        made = {name: tree for name, tree in found.items() if tree}
        return FrozenDict(made) if config.flax_return_frozendict else made

    def apply(self, variables: Any, *args: Any, **kwargs: Any) -> Any:
        """Call it with other variables, as its own `apply` would."""
        return nnm.apply(at(self._owner.abstract(), self._path), variables, *args, **kwargs)


def read(owner: Owner, path: Path, name: str) -> Any:
    """An attribute of the explicit module's part at ``path``.

    Raises:
      AttributeError: there is none, or it is one of NNX's own, which changes nothing here.
    """
    kind = type(at(owner.abstract(), path))
    member = getattr(kind, name, None)
    if name.startswith("__") or member is getattr(nnx.Module, name, _NOTHING):
        raise AttributeError(f"{kind.__name__} is explicit: its {name} is not to be had here")
    if isfunction(member):
        return lambda *args, **kwargs: call(owner, path, name, args, kwargs)
    return owner.with_part(
        lambda model: to_linen_value(owner, model, getattr(at(model, path), name)),
        path,
        calls=False,
    )


def call(owner: Owner, path: Path, method: str, args: Any, kwargs: Any) -> Any:
    """Run a method of the explicit module's part at ``path``."""

    def run(model: nnx.Module) -> Any:
        return to_linen_value(owner, model, getattr(at(model, path), method)(*args, **kwargs))

    input_shapes = shapes_in((args, kwargs))
    if method != "__call__":
        with contextlib.suppress(*_NOT_HELD):  # it hands out submodules
            return owner.with_part(run, path, calls=False, input_shapes=input_shapes)
    return owner.with_part(run, path, calls=True, input_shapes=input_shapes)


def at(model: Any, path: Path) -> Any:
    """What stands at a path of attributes and items."""
    for step in path:
        is_item = isinstance(model, nnx.List | nnx.Dict | list | tuple | dict)
        model = model[step] if is_item else getattr(model, step)
    return model


def to_linen_value(owner: Owner, model: nnx.Module, value: Any) -> Any:
    """A value of the explicit module as Linen's callers know it."""
    if isinstance(value, nnx.List) or type(value) in (list, tuple):
        parts = [to_linen_value(owner, model, one) for one in value]
        is_new = any(one is not other for one, other in zip(parts, value, strict=True))
        return tuple(parts) if is_new else value
    if isinstance(value, nnx.Dict) or type(value) in (dict, FrozenDict):
        every = {name: to_linen_value(owner, model, one) for name, one in value.items()}
        is_new = any(one is not value[name] for name, one in every.items())
        return FrozenDict(every) if is_new else value
    if isinstance(value, nnx.Module):
        path = next(path for path, one in nnx.iter_graph(model) if one is value)
        if is_lazy(value):
            return LazySubmoduleView(owner, path, functools.partial(at, path=path))
        return SubmoduleView(owner, path)
    if isinstance(value, nnx.Param):
        return unbox(value.get_value())
    if isinstance(value, nnx.Variable):
        kind = collection_of(type(value))
        raise AttributeError(f"explicit code holds the variable, of {kind}")  # noqa: TRY004
    return value


# ---- which variables a part has


def place_of(model: nnx.Module, part: Path) -> Place:
    """Where Linen has the variables of a part."""
    return tuple(map(str, linen_place(model)(part)))


def places(model: nnx.Module, part: Path, calls: bool) -> set[Place]:
    """Linen's places, collection first, of the variables that reading or calling a part makes.

    Those of the modules around it are made in ``setup``; a call makes the part's, shared ones included.
    """
    place = linen_place(model)
    inside = {id(one) for _, one in nnx.iter_graph(at(model, part))} if calls else set()
    around = [place_of(model, part[:end]) for end in range(len(part) + 1)]
    found = set()
    for path, one in nnx.iter_graph(model):
        if isinstance(one, nnx.Variable) and not isinstance(one, nnx.RngState):
            names = tuple(map(str, place(path)))
            if id(one) in inside or names[:-1] in around:
                found.add((collection_of(type(one)), *names))
    return found


def select(
    tree: Mapping[str, Any], places_to_keep: set[Place], below: Place | None
) -> dict[str, Any]:
    """The variables of a tree, collection first, at such places, or made by the part at ``below``."""
    found: dict[str, Any] = {}
    for path, value in _leaves(tree, ()):
        if path in places_to_keep or (below is not None and path[1 : 1 + len(below)] == below):
            _put(found, path, value)
    return found


def merge(new_variables: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """What is held, and what was made beside it."""
    found: dict[str, Any] = {}
    for path, value in (*_leaves(new_variables, ()), *_leaves(variables, ())):
        _put(found, path, value)
    return found


def lacks_parameters(
    model: nnx.Module, part: Path, variables: Mapping[str, Any], calls: bool = True
) -> bool:
    """Whether a part, or what is around it, has parameters that are not held."""
    return any(one[0] == "params" for one in _missing_places(model, part, variables, calls))


def missing_state(
    model: nnx.Module, variables: Mapping[str, Any], is_mutable: Callable[[str], bool]
) -> set[Place]:
    """Where a module has variables, parameters aside, that may be made and are not held."""
    return {
        one for one in missing_places(model, variables) if one[0] != "params" and is_mutable(one[0])
    }


def missing_places(model: nnx.Module, variables: Mapping[str, Any]) -> set[Place]:
    """Where a module has variables that are not held."""
    return _missing_places(model, (), variables, calls=True)


def _missing_places(
    model: nnx.Module, part: Path, variables: Mapping[str, Any], calls: bool
) -> set[Place]:
    """Where a part, or what is around it, has variables that are not held."""
    return {one for one in places(model, part, calls) if _below(variables, one) is _ABSENT}


def holds(tree: Mapping[str, Any], place: Place) -> bool:
    """Whether a collection has variables at a place."""
    return _below(tree, place) is not _ABSENT


_ABSENT: Mapping[str, Any] = {}


def _below(tree: Any, path: Place) -> Any:
    for name in path:
        tree = tree.get(name, _ABSENT) if isinstance(tree, Mapping) else _ABSENT
    return tree


def _put(tree: dict[str, Any], path: Place, value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _leaves(tree: Any, path: Place) -> Iterator[tuple[Place, Any]]:
    if not isinstance(tree, Mapping):
        yield path, tree
        return
    for name, value in tree.items():
        yield from _leaves(value, (*path, name))
