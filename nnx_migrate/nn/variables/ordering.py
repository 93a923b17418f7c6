"""The order in which Linen lists variables: that in which the call of its ``init`` makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

from flax import nnx
from flax.core.scope import in_filter

from nnx_migrate.nn.variables.sharing import Path, as_made, linen_place, nodes_of


def in_order(
    variables: Mapping[Path, Any],
    modules: Iterable[nnx.Module],
    uses: Iterable[Path] = (),
    transformed_modules: Mapping[Path, Sequence[Any]] = MappingProxyType({}),
) -> dict[Path, Any]:
    """Variables by collection and path as Linen lists them; what no module holds comes last.

    A module's own variables and its submodules stand where the constructor made them, and among the
    submodules the one comes first that the call reaches first: ``norm()(conv(x))`` builds the other one first.
    ``nnx.state`` sorts them by name, and so does jax each group of collections that comes out of
    ``nn.scan`` or ``nn.remat``: first by collection.

    Args:
      modules: one as it was built, and copies of it that were called: a call may have made some.
      uses: Linen's paths of variables, in the order in which a call first uses them.
      transformed_modules: those of modules that it runs inside of such transformations, with these groups.
    """
    order: dict[Path, int] = {}
    parts: dict[Path, list[Path]] = {}  # paths of submodules by that of what holds them
    for module in modules:
        place = linen_place(module)
        for made, node in nodes_of(module, as_made):
            path = place(made)
            is_module = path and isinstance(node, nnx.Module)
            if is_module and path not in order:
                parts.setdefault(path[:-1], []).append(path)
            order.setdefault(path, len(order))
    numbers_by_path: dict[Path, int] = {}
    for number, path in enumerate(uses):
        for end in range(len(path)):
            numbers_by_path.setdefault(path[:end], number)
    for children in parts.values():  # which exchange places
        places = sorted(order[one] for one in children)
        children.sort(key=lambda one: numbers_by_path.get(one, inf))
        order |= zip(children, places, strict=True)
    return dict(sorted(variables.items(), key=_position(order, transformed_modules)))


def _position(
    order: Mapping[Path, int], transformed_modules: Mapping[Path, Sequence[Any]]
) -> Callable[[tuple[Path, Any]], list[tuple[int, str]]]:
    def position(entry: tuple[Path, Any]) -> list[tuple[int, str]]:
        collection, *rest = entry[0]
        path = tuple(rest)
        first = next(
            (end for end in range(len(path)) if path[:end] in transformed_modules), len(path)
        )
        numbers = [order.get(path[: end + 1], len(order)) for end in range(first)]
        numbers.append(_group(collection, transformed_modules.get(path[:first], ())))
        # What is no variable of the module itself stands as it was found.
        is_known = first == len(path) and path in order
        names = () if is_known else (collection, *path[first:])
        return [*((number, "") for number in numbers), *((0, name) for name in names)]

    return position


def _group(collection: str, groups: Sequence[Any]) -> int:
    """The number of the group that a collection is in."""
    found = (number for number, one in enumerate(groups) if in_filter(one, collection))
    return next(found, len(groups))
