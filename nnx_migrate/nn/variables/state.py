"""Linen's state methods for migrated modules: by collection and name, as ``flax.linen.Module`` has them.

A Linen call says which collections it may change (``mutable=``); a plain call of an NNX module may
change all its state but the parameters. Inside :func:`nnx_migrate.nn.apply`,
:func:`nnx_migrate.nn.variables_of` and :func:`nnx_migrate.nn.lazy_init` the answers are Linen's.

flax 0.12.8: linen/module.py (``get_variable``, ``put_variable``, ``is_mutable_collection``, ``perturb``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from flax import nnx
from flax.core.scope import DenyList, in_filter

from nnx_migrate.nn.variables.parts import CAPTURES
from nnx_migrate.nn.variables.variables import lacks, variable, variable_type
from nnx_migrate.sharding.boxes import boxed, unbox

C = TypeVar("C", bound=Callable[..., Any])
PERTURBATIONS = "perturbations"
LIFT = ""  # in place of a collection
_AT_INIT = DenyList("intermediates")  # what Linen's ``init`` may change


@dataclass(frozen=True)
class Running:
    """The Linen call that is running.

    Attributes:
      mutable: its ``mutable=``.
      collections: the collections it was given.
      rngs: its keys, by stream.
      is_init: whether it stands for ``init``.
      is_again: whether an earlier call of the same ``init`` made the module's variables.
      new_paths: where it starts without variables that it makes, by collection and Linen's path.
      sown: mutable collections that it sowed into and nobody captured.
      transformed_modules: modules that it ran inside of a transformation of jax, with the groups of collections
        that come out of it.
      variable_requests: what it was asked for before the variable is made, with the module that asked.
      module: the outermost module that it runs.
      marks: an array for each lazy module inside, by Linen's path: it is used where the call first reaches it.
      places: where Linen has the modules that it runs, those inside of transformations aside, by id.
      trees: dicts that it was given, by the module, collection and name of the variable that may hold each.
      order: in which order it made variables, by collection and path, and ran the modules that it runs
        inside of transformations, by ``LIFT`` and path.
    """

    mutable: Any
    collections: Collection[str] = ()
    rngs: Mapping[str, Any] = field(default_factory=dict)
    is_init: bool = False
    is_again: bool = False
    new_paths: Collection[tuple[str, ...]] = ()
    sown: set[str] = field(default_factory=set)
    transformed_modules: list[tuple[nnx.Module, tuple[Any, ...]]] = field(default_factory=list)
    variable_requests: dict[tuple[int, str, str], nnx.Module] = field(default_factory=dict)
    module: nnx.Module | None = None
    marks: dict[tuple[str, ...], jax.Array] = field(default_factory=dict)
    places: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    trees: Mapping[tuple[int, str, str], Any] = field(default_factory=dict)
    order: dict[tuple[str, ...], int] = field(default_factory=dict)

    def note(self, module: nnx.Module, collection: str, *name: str) -> None:
        """Note that the call comes to a variable of a module, or with ``LIFT`` to the module."""
        place = self.places.get(id(module))
        if place is not None:
            self.order.setdefault((collection, *place, *name), len(self.order))

    def makes(self, module: nnx.Module, collection: str, name: str) -> bool:
        """Whether the call makes a variable that the module's constructor has made."""
        if self.is_init:
            return not self.is_again
        return (collection, *self.places.get(id(module), ()), name) in self.new_paths

    def position(self, path: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
        """When the call made a variable; jax sorts by name those that come out of a transformation."""
        if path in self.order:
            return self.order[path], ()
        around = ((LIFT, *path[1:end]) for end in range(1, len(path)))
        number = next((self.order[one] for one in around if one in self.order), None)
        return (inf, ()) if number is None else (number, path)


_running: ContextVar[Running | None] = ContextVar("_running", default=None)


@contextmanager
def running(call: Running) -> Iterator[Running]:
    """While a call of Linen's ``apply`` or ``init`` runs."""
    token = _running.set(call)
    try:
        yield call
    finally:
        _running.reset(token)


def initializing(module: nnx.Module | None = None) -> AbstractContextManager[Running]:
    """While a call of a module runs that stands for the one of Linen's ``init``."""
    return running(Running(_AT_INIT, is_init=True, module=module))


def running_module() -> nnx.Module | None:
    """The outermost module of the Linen call that is running."""
    call = _running.get()
    return None if call is None else call.module


def mark_use(place: tuple[str, ...]) -> None:
    """Note that the running call comes to the lazy module at a path of Linen's."""
    call = _running.get()
    if call is not None and place in call.marks:
        jnp.negative(call.marks[place])


def note_lift(groups: Callable[[Any], Sequence[Any]]) -> Callable[[C], C]:
    """Decorate a call that runs its module inside of a transformation of jax: `Running` notes it.

    Args:
      groups: of a module, collections (Linen's filters) in the order in which Linen's lift gives them back.
    """

    def decorate(call: C) -> C:
        @functools.wraps(call)
        def run_and_note(module: nnx.Module, *args: Any, **kwargs: Any) -> Any:
            running = _running.get()
            if running is not None:
                running.note(module, LIFT)
            if running is not None and running.is_init:
                running.transformed_modules.append((module, tuple(groups(module))))
            return call(module, *args, **kwargs)

        return cast(C, run_and_note)

    return decorate


def is_initializing() -> bool:
    """``self.is_initializing()`` in a call: whether it stands for the one of Linen's ``init``."""
    call = _running.get()
    return call is not None and call.is_init


def may_make(collection: str) -> bool:
    """Whether a call of Linen's runs that may make variables of the collection."""
    call = _running.get()
    return call is not None and bool(in_filter(call.mutable, collection))


def is_mutable_collection(module: nnx.Module, col: str) -> bool:
    """``self.is_mutable_collection(col)``: whether this call may change the collection.

    In a plain call of the migrated module: what ``nnx.capture`` captures, and every collection but
    ``params`` and ``intermediates``.
    """
    if is_captured(module, col):
        return True
    call = _running.get()
    if call is not None:
        return bool(in_filter(call.mutable, col))
    return col not in ("params", "intermediates")


def is_captured(module: nnx.Module, col: str) -> bool:
    """Whether the module runs under an ``nnx.capture`` of the collection's variable type."""
    return any(type(one) is variable_type(col) for one in getattr(module, CAPTURES, ()))


def has_variable(module: nnx.Module, col: str, name: str, *, made_later: bool = False) -> bool:
    """``self.has_variable(col, name)``: whether the module holds that variable.

    Args:
      made_later: the method makes the variable after it asks, so that the first call in Linen has
        none; the constructor of the migrated module has made it.
    """
    _take_tree(module, col, name)
    has_it = type(getattr(module, name, None)) is variable_type(col)
    return has_it and not (made_later and _is_first(module, col, name))


def _is_first(module: nnx.Module, col: str, name: str) -> bool:
    """Whether the running call asks for the first time for a variable that it makes afterwards."""
    call = _running.get()
    if call is None or not call.makes(module, col, name):
        return False
    key = id(module), col, name
    is_first = key not in call.variable_requests
    call.variable_requests[key] = module  # kept, so that no other module gets its id
    return is_first


def _take_tree(module: nnx.Module, col: str, name: str) -> None:
    """Make a variable of the dict that the running call was given for it."""
    call = _running.get()
    key = id(module), col, name
    if call is not None and key in call.trees and lacks(module, name):
        setattr(module, name, variable(col, call.trees[key], is_given=True))


def sow(module: nnx.Module, col: str, name: str, value: Any, **options: Any) -> bool:
    """``self.sow(...)``: stores only under ``nnx.capture``, as Linen's only where mutable."""
    call = _running.get()
    if call is not None and may_make(col) and not is_captured(module, col):
        call.sown.add(col)
    if not hasattr(module, CAPTURES):
        return False
    if call is not None:
        call.note(module, col, name)
    return bool(module.sow(variable_type(col), name, value, **options))


def get_variable(
    module: nnx.Module, col: str, name: str, default: Any = None, *, made_later: bool = False
) -> Any:
    """``self.get_variable(col, name, default)``: the value of a variable of the module itself.

    One with logical axis names is in a box, as Linen's is (:mod:`nnx_migrate.sharding`).

    Args:
      made_later: as of :func:`has_variable`.
    """
    is_there = has_variable(module, col, name, made_later=made_later)
    return boxed(getattr(module, name)) if is_there else default


def put_variable(module: nnx.Module, col: str, name: str, value: Any) -> None:
    """``self.put_variable(col, name, value)``: set a variable, or make it.

    One that is made here is new state: under ``jax.jit`` the caller must return it, and inside
    ``nnx`` transforms it must exist already: call the module once before.

    Raises:
      ValueError: the attribute is taken by something else.
    """
    found = getattr(module, name, None)
    if type(found) is variable_type(col):
        found.set_value(unbox(value))
    elif name in vars(module):
        raise ValueError(
            f"expected {type(module).__name__}.{name} to be a variable of '{col}', found "
            f"{type(found).__name__}: an NNX module has one attribute of a name"
        )
    else:
        setattr(module, name, variable(col, value))
    call = _running.get()
    if call is not None:
        call.note(module, col, name)


def perturb(module: nnx.Module, name: str, value: Any, collection: str = PERTURBATIONS) -> Any:
    """``self.perturb(name, value)``: ``value`` plus the perturbation of that name, if there is one.

    The initial call makes the perturbations, zeros like ``value``; ``apply`` adds those that it is
    given, so their gradients are those of ``value``. Under ``nnx.capture`` of the collection's type
    they are NNX's own.

    Raises:
      ValueError: ``apply`` is given the collection without this perturbation.
    """
    if is_captured(module, collection):
        return module.perturb(name, value, variable_type(collection))
    has_it = type(getattr(module, name, None)) is variable_type(collection)
    call = _running.get()
    if not has_it and may_make(collection):
        put_variable(module, collection, name, jax.tree.map(jnp.zeros_like, value))
        has_it = True
    if has_it:
        return jax.tree.map(jnp.add, value, getattr(module, name).get_value())
    if call is not None and collection in call.collections:
        raise ValueError(
            f"the collection '{collection}' was given without the perturbation '{name}' of "
            f"{type(module).__name__}: pass all that init made, or none"
        )
    return value
