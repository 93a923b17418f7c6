"""Lazy modules that an explicit one holds, in calls of Linen's style: each has a scope at its path.

::

    class Net(nnx.Module):
        def __init__(self, *, in_features, rngs):
            self.encoder = nnx.Linear(in_features, 8, rngs=rngs)
            self.head = Head(3)  # lazy: the call makes its variables

        def __call__(self, x):
            return self.head(self.encoder(x))

A call of ``lazy(Net)`` runs ``Net`` on copies, several times where sizes have to be found. So what the
lazy modules do to variables and keys stays in a scope beside that of the call, and is taken over once.

One that another module has made, and handed in, has its variables there, as in Linen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flax import nnx

from nnx_migrate.linen.core.context import context
from nnx_migrate.linen.core.random_numbers import kept_random_numbers
from nnx_migrate.linen.core.scope import Scope, adopted_modules
from nnx_migrate.linen.core.tree import modules_in
from nnx_migrate.nn.variables.sharing import (
    as_made,
    definitions_in,
    is_lazy,
    linen_place,
    nodes_of,
)
from nnx_migrate.nn.variables.state import mark_use, running_module

Place = tuple[str, ...]  # in Linen's variables


UNMADE = object()  # in trees of variables, at the place of what a lazy module makes


def _without_unmade(tree: Mapping[str, Any], made: set[Place], above: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in tree.items():
        path = (*above, name)
        if value is UNMADE and path not in made:
            continue
        is_tree = isinstance(value, Mapping) and bool(value)
        rest = _without_unmade(value, made, path) if is_tree else value
        if not is_tree or rest:
            found[name] = rest
    return found


@dataclass(frozen=True)
class _Run:
    """One copy of the explicit module that runs, and scopes for its lazy modules.

    Attributes:
      scope: for those that the explicit module owns.
      places: Linen's paths of the lazy modules, by identity.
      bound_modules: those owned that were called, by path.
      roots: the scopes beside the roots of the trees of modules that were handed in, by root.
      guests: those handed in that were called, by the scope where their owner has them.
      copies: of the modules in fields, by their ids: one that several hold is the first's to own.
    """

    copy: nnx.Module
    scope: Scope
    places: Mapping[int, Place]
    bound_modules: dict[Place, Any] = field(default_factory=dict)
    roots: dict[Any, Scope] = field(default_factory=dict)
    guests: dict[Any, Any] = field(default_factory=dict)
    copies: dict[Any, Any] = field(default_factory=dict)


class LazySubmodules:
    """The lazy modules inside of the explicit module of a scope, while one call of it runs."""

    def __init__(self, scope: Any, variables: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        """Start with the variables that the scope holds, and its keys.

        Args:
          fields: what the fields of the explicit module were given.
        """
        self._around = scope
        self._variables = variables
        self._fields = fields
        self._runs: dict[int, _Run] = {}  # by the identity of the copy; the last one counts

    def bind(self, module: Any) -> Any:
        """The module bound to its scope; None for one that the running explicit module does not hold."""
        copy = running_module()
        if copy is None:
            return None
        run = self._runs.get(id(copy)) or self._begin(copy)
        place = run.places.get(id(module))
        if place is None:
            return None
        home = module._nnm_home()
        if self._is_elsewhere(home):
            return self._guest(run, module)
        if module._id in run.copies:
            copy_in_field = run.copies[module._id]
            if copy_in_field.scope is None:  # a field of another one, which has adopted it
                copy_in_field = adopted_modules(run.scope)[copy_in_field._id]
            mark_use(copy_in_field.scope.path[len(self._around.path) :])
            return copy_in_field
        place = place if home is None else home.path[len(self._around.path) :]
        if place not in run.bound_modules:
            mark_use(place)
            run.bound_modules[place] = self._bound_at(run, module, run.scope, place)
        return run.bound_modules[place]

    def _own(self, run: _Run) -> None:
        """Bind what the explicit module holds in the order of its fields, if several hold one module.

        As in Linen, that one is owned by the first that is reached so, whichever is called first.
        """
        # A copy of the explicit module has other objects for these.
        adopted_fields: dict[Place, tuple[str, Any]] = {
            (f"{name}{suffix}",): (name, one._id)
            for name, value in self._fields.items()
            for suffix, one in modules_in(value)
            if hasattr(one, "_id")
        }
        if not adopted_fields:
            return
        nodes = {path: one for path, one in nodes_of(run.copy, as_made) if is_lazy(one)}
        nodes_by_path = {
            path: adopted_fields.get(path, ("/".join(path), one._id)) for path, one in nodes.items()
        }
        ids = {path: one for path, (_, one) in nodes_by_path.items()}
        if len({*ids.values()}) == len(nodes):
            return
        place = linen_place(run.copy)
        for path in _in_linens_order(nodes_by_path, [*self._fields]):
            one = nodes[path]
            if self._is_elsewhere(one._nnm_home()):
                continue
            if ids[path] not in run.copies:
                at = tuple(map(str, place(path)))
                made = self._bound_at(run, one, run.scope, at)
                run.bound_modules[at] = run.copies[ids[path]] = made
                made._try_setup(shallow=True)  # it owns what its fields hold
            run.copies[one._id] = run.copies[ids[path]]

    def _is_elsewhere(self, home: Any) -> bool:
        """Whether a scope is not below that of the explicit module."""
        own = self._around.path
        return home is not None and (home.path[: len(own)] != own or len(home.path) == len(own))

    def _guest(self, run: _Run, module: Any) -> Any:
        """A module that was handed in, bound where its owner has it."""
        home = module._nnm_home()
        if home not in run.guests:
            root = home.root
            if root not in run.roots:
                run.roots[root] = _beside(root, root._variables)
            place = home.path[len(root.path) :]
            run.guests[home] = self._bound_at(run, module, run.roots[root], place)
        return run.guests[home]

    def _bound_at(self, run: _Run, module: Any, scope: Scope, place: Place) -> Any:
        for name in place:
            scope = scope.push(name, reuse=True)
        run.copies.update({one._id: self._guest(run, one) for one in self._guests_in(module)})
        return module.clone(parent=scope, name=scope.name, _deep_clone=run.copies)

    def _guests_in(self, module: Any) -> Iterator[Any]:
        """The modules in the fields of one, and in theirs, that others have made."""
        for name in module._nnm_fields:
            for _, one in modules_in(getattr(module, name)):
                if self._is_elsewhere(getattr(one, "_nnm_home", lambda: None)()):
                    yield one
                elif hasattr(one, "_nnm_fields"):
                    yield from self._guests_in(one)

    def places(self) -> dict[tuple[str, ...], Any]:
        """`UNMADE` where they made the first variables of a collection, by collection and path."""
        return {
            (collection, *place): UNMADE
            for collection, place, _ in self._new_variables()
            if not _at(self._variables.get(collection, {}), place) and not self._is_inside(place)
        }

    def without_unmade(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Variables with `UNMADE` where this call made what a trial made; it may have gone another way."""
        made = {(collection, *place) for collection, place, _ in self._new_variables()}
        return _without_unmade(variables, made, ())

    def _is_inside(self, place: Place) -> bool:
        """Whether another one that was called holds the module at a place."""
        return any(
            place[:end] in run.bound_modules for run in self._last() for end in range(1, len(place))
        )

    def hand_over(self) -> None:
        """Give the scope of the call what they made and changed, and how many keys they drew."""
        around = self._around
        for collection, place, part in self._new_variables():
            if around.is_mutable_collection(collection):
                around.put_variable(collection, place[0], _nest(place[1:], part))
        for run in self._last():
            around.rng_counters.update(_counters_below(run.scope.rng_counters))

    def hand_back(self) -> None:
        """The same for the owners of those that were handed in."""
        for run in self._last():
            for home, guest in run.guests.items():
                _hand_over(home, guest.scope)

    def _new_variables(self) -> Iterator[tuple[str, Place, Any]]:
        """Collections, the paths of lazy modules and what these hold of it."""
        for run in self._last():
            for collection, tree in run.scope._variables.items():
                parts = ((place, _at(tree, place)) for place in run.bound_modules)
                yield from ((collection, place, part) for place, part in parts if part)

    def _last(self) -> list[_Run]:
        return list(self._runs.values())[-1:]

    def _begin(self, copy: nnx.Module) -> _Run:
        scope = _beside(self._around, self._variables)
        places = {id(one): path for path, one in definitions_in(copy)}
        run = self._runs[id(copy)] = _Run(copy, scope, places)
        self._own(run)
        return run


def _in_linens_order(
    nodes_by_path: Mapping[Place, tuple[str, Any]], fields: Sequence[str]
) -> list[Place]:
    """The paths of what an explicit module holds itself: field by field, and all of one field before what those hold.

    Args:
      nodes_by_path: the field and the identity of each module by its path, also of those inside of others.
      fields: of the class, in order; a copy of the module has its attributes in another.
    """
    top = {
        path: next(path[:end] for end in range(1, len(path) + 1) if path[:end] in nodes_by_path)
        for path in nodes_by_path
    }
    inside = {
        (nodes_by_path[top[path]][0], one)
        for path, (_, one) in nodes_by_path.items()
        if path != top[path]
    }
    fields = list(dict.fromkeys((*fields, *(nodes_by_path[path][0] for path in top.values()))))
    return sorted(
        dict.fromkeys(top.values()),
        key=lambda path: (fields.index(nodes_by_path[path][0]), nodes_by_path[path] not in inside),
    )


@contextlib.contextmanager
def on_trial(
    scope: Any, variables: Mapping[str, Any], fields: Mapping[str, Any]
) -> Iterator[LazySubmodules]:
    """Let calls of an explicit module reach its lazy ones, and forget what these do.

    What is built meanwhile is nobody's child, tabulations see nothing, and random numbers are drawn again.
    """
    submodules = LazySubmodules(scope, variables, fields)
    with (
        context.outside(),
        context.binding(submodules.bind),
        context.without_tabulation(),
        kept_random_numbers(),
    ):
        yield submodules


def _beside(around: Any, variables: Mapping[str, Any]) -> Scope:
    """A scope like another one, on copies of variables; the keys of those below count on."""
    scope = Scope(
        {name: _copy(part) for name, part in variables.items()},
        around.rngs,
        around.name,
        around.mutable,
        path=around.path,
        debug_path=around.debug_path,
        flags=around.flags,
    )
    scope.rng_counters.update(_counters_below(around.rng_counters))
    return scope


def _hand_over(home: Any, scope: Scope) -> None:
    """Give the scope of a module's owner what its copy made and changed, and how many keys it drew."""
    for collection, part in scope.variables().items():
        if home.is_mutable_collection(collection):
            for name, value in part.items():
                home.put_variable(collection, name, value)
    home.rng_counters.update(_copy(scope.rng_counters))


def _counters_below(counters: Mapping[Any, Any]) -> dict[Any, Any]:
    """Copies of the counters of the scopes below."""
    return {
        key: _copy(one)
        for key, one in counters.items()
        if isinstance(one, dict) and key[:1] == ("child",)
    }


def _copy(tree: Any) -> Any:
    if not isinstance(tree, Mapping):
        return tree
    return {name: _copy(value) for name, value in tree.items()}


def _at(tree: Any, place: Place) -> Any:
    for name in place:
        tree = tree.get(name, {}) if isinstance(tree, Mapping) else {}
    return tree


def _nest(place: Place, value: Any) -> Any:
    for name in reversed(place):
        value = {name: value}
    return value
