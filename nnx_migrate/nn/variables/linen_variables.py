"""Linen's variables as attributes of an NNX module, and back, with their axis names.

``flax.nnx.bridge.variables`` (0.12.8) turns the names of a box into ``out_sharding``, which NNX resolves
by its own rules and applies when it makes the variable. Here they are kept as
:func:`nnx_migrate.nn.with_logical_partitioning` keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flax import nnx
from flax.core.meta import AxisMetadata

from nnx_migrate.nn.variables.sharing import linen_place
from nnx_migrate.nn.variables.variables import collection_of, variable_type
from nnx_migrate.sharding.boxes import metadata_of

Path = tuple[str, ...]
_BOX = "linen_box"  # metadata: the box of the value, empty


def attributes_of(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dicts of NNX variables of Linen's ``variables`` (collection -> path -> value or box).

    Raises:
      ValueError: two collections have a variable of one path.
    """
    found: dict[Path, nnx.Variable[Any]] = {}
    for collection, tree in variables.items():
        for path, value in leaves(tree):
            if path in found:
                raise ValueError(
                    f"expected one variable of the path {'/'.join(path)}, found it in "
                    f"'{collection_of(type(found[path]))}' and '{collection}': an NNX module has one "
                    "attribute of a name"
                )
            found[path] = _variable(collection, value)
    return nest(found)


def _variable(collection: str, value: Any) -> nnx.Variable[Any]:
    kind = variable_type(collection)
    if not isinstance(value, AxisMetadata):
        return kind(value)
    names = metadata_of(value)
    metadata: dict[str, Any] = {_BOX: value.replace_boxed(None), **names}
    return kind(getattr(value, "value", None) if names else value.unbox(), **metadata)


def _value(variable: nnx.Variable[Any]) -> Any:
    box = variable.get_metadata().get(_BOX)
    value = variable.get_value()
    return value if box is None else box.replace_boxed(value)


def flat_state(
    model: nnx.Module, state: Any, read: Callable[[nnx.Variable[Any]], Any] = nnx.Variable.get_value
) -> dict[Path, Any]:
    """(collection, *Linen's path) -> value of every variable that is no random state."""
    place = linen_place(model)
    found: dict[Path, Any] = {}
    for path, one in nnx.to_flat_state(state):
        if isinstance(one, nnx.Variable) and not isinstance(one, nnx.RngState):
            found[(collection_of(type(one)), *map(str, place(path)))] = _as_dicts(read(one))
    return found


def _as_dicts(value: Any) -> Any:
    """A value with dicts where it was made of them: an optimizer's update makes `nnx.State` of these."""
    if isinstance(value, nnx.State):
        return {name: _as_dicts(one) for name, one in value.items()}
    return value


def leaves(tree: Mapping[str, Any], prefix: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Path and value of every leaf of nested dicts."""
    for name, one in tree.items():
        if isinstance(one, Mapping):
            yield from leaves(one, (*prefix, name))
        else:
            yield (*prefix, name), one


def nest(flat: Mapping[Path, Any]) -> dict[str, Any]:
    """Nested dicts of values by path."""
    found: dict[str, Any] = {}
    for path, value in flat.items():
        inner = found
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return found
