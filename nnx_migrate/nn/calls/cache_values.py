"""Given variables that a call makes: the module that is merged with the others does not hold them yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flax import nnx

from nnx_migrate.nn.variables.linen_variables import leaves
from nnx_migrate.nn.variables.sharing import is_lazy, linen_place
from nnx_migrate.nn.variables.variables import lacks, variable

Path = tuple[str, ...]


def attach(model: nnx.Module, values: Mapping[str, Any]) -> None:
    """Give the model the variables that a call made before (caches), which it does not hold yet."""
    others = [
        (collection, path, value)
        for collection, tree in _state_trees(values)
        for path, value in leaves(tree)
    ]
    if not others:
        return
    owners = _owners(model)
    for collection, path, value in others:
        owner = owners.get(path[:-1])
        if owner is not None and lacks(owner, path[-1]):
            setattr(owner, path[-1], variable(collection, value, is_given=True))


def trees_by_owner(model: nnx.Module, values: Mapping[str, Any]) -> dict[tuple[int, str, str], Any]:
    """Dicts that are given where a module has none: a variable that holds one, or what it does not know.

    Nobody can tell those apart before the call asks for the variable; so a module gets it then.
    """
    trees = [
        (collection, tree)
        for collection, tree in _state_trees(values)
        if any(isinstance(one, Mapping) for one in tree.values())
    ]
    if not trees:
        return {}
    owners = _owners(model)
    inside = {path[:end] for path in owners for end in range(1, len(path) + 1)}
    return {
        (id(owner), collection, name): value
        for collection, tree in trees
        for path, owner in owners.items()
        for name, value in _at(tree, path).items()
        if isinstance(value, Mapping) and (*path, name) not in inside
    }


def _state_trees(values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for collection, tree in values.items():
        if collection != "params" and isinstance(tree, Mapping):
            yield collection, tree


def _owners(model: nnx.Module) -> dict[Path, nnx.Module]:
    """The modules that may get variables, by their place in Linen's tree."""
    place = linen_place(model)
    return {
        tuple(map(str, place(path))): one
        for path, one in nnx.iter_graph(model)
        if isinstance(one, nnx.Module) and not is_lazy(one)
    }


def _at(tree: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    found: Any = tree
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
