"""Submodules that an NNX module holds in several places.

``nnx.state`` lists a shared submodule once, at the path it meets first in the sorted order of
attribute names (flax 0.12.8 and 0.12.12: nnx/graphlib.py). Linen lists it where it was built. The
builder hands it down to its own children, so among all paths that lead to it the builder's is the
shortest; that one is taken as Linen's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flax import nnx

Path = tuple[str, ...]
# Attribute of a module: pairs of its submodules' attributes and what Linen calls them instead.
NAMES = "_names_in_linen"
Children = Callable[[Any], list[tuple[str, Any]]]


def shared_paths(module: nnx.Module) -> Mapping[str, str]:
    """Return the path of every shared submodule or variable where it was built -> nnx.state's path.

    Only those whose two paths differ are listed.
    """
    built_paths = _built_paths(_all_paths(module))
    return {
        "/".join(built_path): "/".join(state_path) for state_path, built_path in built_paths.items()
    }


def renamed_paths(module: nnx.Module) -> Mapping[str, str]:
    """Return Linen's path of every submodule -> nnx.state's, where attributes have other names."""
    place = linen_place(module)
    steps = _steps([*_all_paths(module)])
    return {"/".join(place(path)): "/".join(path) for path in steps}


def linen_place(module: nnx.Module) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """The function from a path of ``nnx.state(module)`` to Linen's: where what it names was built."""
    nodes = list(_all_paths(module))
    built_paths, steps = _built_paths(nodes), _steps(nodes)

    def place(path: tuple[Any, ...]) -> tuple[Any, ...]:
        names = tuple(map(str, path))
        for end in range(len(names), 0, -1) if built_paths else ():
            if names[:end] in built_paths:  # each time the path gets shorter
                return place((*built_paths[names[:end]], *path[end:]))
        if not steps:
            return path
        return tuple(steps.get(names[: i + 1], step) for i, step in enumerate(path))

    return place


def modules_in(module: nnx.Module) -> list[tuple[Path, nnx.Module]]:
    """The explicit modules of a module, itself among them, by their paths in Linen."""
    return [(path, one) for path, one in _places_in(module) if not is_lazy(one)]


def definitions_in(module: nnx.Module) -> list[tuple[Path, Any]]:
    """The lazy modules in a module that are not built, by their paths in Linen: the first that was set counts."""
    found: dict[int, tuple[Path, Any]] = {}
    for path, one in sorted(nodes_of(module, as_made), key=lambda node: len(node[0])):
        if is_lazy(one) and not one._nnm_is_built:
            found.setdefault(id(one), (path, one))
    place = linen_place(module)
    return [(tuple(map(str, place(path))), one) for path, one in found.values()]


def is_lazy(module: Any) -> bool:
    """Whether it is a lazy module (`nnx_migrate.linen`): what calls of it make is kept elsewhere."""
    return hasattr(type(module), "_nnm_is_built")


def given_name(module: Any) -> str | None:
    """The name that a lazy module was given where it was made: Linen keeps it whatever holds the module."""
    name = getattr(module, "name", None) if is_lazy(module) else None
    return name if isinstance(name, str) else None


def _places_in(module: nnx.Module) -> Iterator[tuple[Path, Any]]:
    place = linen_place(module)
    for path, one in nnx.iter_modules(module):
        yield tuple(map(str, place(path))), one


def _steps(nodes: Sequence[tuple[Path, Any]]) -> dict[Path, str]:
    """Path of a submodule -> Linen's name for its last step, where that is another."""
    found = {
        (*path, attribute): name
        for path, node in nodes
        for attribute, name in getattr(node, "__dict__", {}).get(NAMES, ())
    }
    lazy = {path for path, node in nodes if is_lazy(node)}
    own = {path: given_name(node) for path, node in nodes if path and path[:-1] not in lazy}
    return found | {path: name for path, name in own.items() if name is not None}


def _built_paths(nodes: Iterable[tuple[Path, Any]]) -> dict[Path, Path]:
    """nnx.state's path -> the path where it was built, where the two differ."""
    places: dict[int, list[Path]] = {}
    for path, node in nodes:
        places.setdefault(id(node), []).append(path)
    found: dict[Path, Path] = {}
    for paths in places.values():
        built_path = min(paths, key=len)
        if built_path != paths[0] and [len(one) for one in paths].count(len(built_path)) == 1:
            found[built_path] = paths[0]
    return {
        state_path: built_path
        for built_path, state_path in found.items()
        if not _follows(built_path, found)
    }


def _follows(path: Path, state_paths: Mapping[Path, Path]) -> bool:
    """Whether what holds it is listed elsewhere already."""
    parent = path[:-1]
    return parent in state_paths and state_paths[path] == (*state_paths[parent], path[-1])


def nodes_of(module: nnx.Module, children: Children) -> Iterator[tuple[Path, Any]]:
    """Every way to every module and variable, the module itself first."""
    return _nodes(module, (), (), children)


def _nodes(
    node: Any, path: Path, above: tuple[int, ...], children: Children
) -> Iterator[tuple[Path, Any]]:
    if id(node) in above:
        return
    if isinstance(node, nnx.Variable):
        yield path, node
        return
    if isinstance(node, nnx.Module):
        yield path, node
    for name, child in children(node):
        yield from _nodes(child, (*path, name), (*above, id(node)), children)


def _all_paths(module: nnx.Module) -> Iterator[tuple[Path, Any]]:
    """Every way to every module and variable, in the order of ``nnx.state``."""
    return nodes_of(module, _in_state_order)


def _in_state_order(node: Any) -> list[tuple[str, Any]]:
    """What a node holds, in the order of ``nnx.state``."""
    children = as_made(node)
    return children if isinstance(node, list | tuple) else sorted(children, key=lambda one: one[0])


def as_made(node: Any) -> list[tuple[str, Any]]:
    """What a node holds, in the order in which it was set."""
    if isinstance(node, nnx.Pytree | nnx.Module):
        return [(name, value) for name, value in vars(node).items() if not _internal(name)]
    if isinstance(node, Mapping):
        return [(str(name), value) for name, value in node.items()]
    if isinstance(node, list | tuple):
        return [(str(index), value) for index, value in enumerate(node)]
    return []


def _internal(name: str) -> bool:
    return name.startswith("_pytree__")
