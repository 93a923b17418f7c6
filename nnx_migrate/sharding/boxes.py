"""Boxes of names around arrays, and trees of them: Linen's way to carry logical axis names.

``model.init`` of Linen returns a :class:`LogicallyPartitioned` where an initialiser gave names, and
``nnm.variables_of`` returns the same. A box that an initialiser returns becomes the metadata of the
variable made of it. Linen's boxes are read as these are: both are ``flax.core.meta.AxisMetadata``.

flax 0.12.8 and 0.12.12: core/meta.py, linen/spmd.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import jax
from flax import nnx
from flax.core.meta import AxisMetadata, is_axis_metadata, map_axis_meta
from flax.core.meta import Partitioned as _LinensBox
from jax.sharding import NamedSharding, PartitionSpec
from jax.tree_util import GetAttrKey, register_pytree_with_keys

from nnx_migrate.sharding.annotations import annotation
from nnx_migrate.sharding.constraints import constrain
from nnx_migrate.sharding.placing import AnyMesh, ambient_mesh
from nnx_migrate.sharding.resolve import Rules

__all__ = [
    "AxisMetadata",
    "LogicallyPartitioned",
    "Partitioned",
    "boxed",
    "get_partition_spec",
    "get_sharding",
    "is_axis_metadata",
    "map_axis_meta",
    "metadata_of",
    "replace_boxed",
    "unbox",
]


# Metadata of a variable. Not NNX's own ``out_sharding``: under that name NNX resolves and applies
# the axes while it constructs, by rules that are not Linen's, and fails where there is no mesh.
LOGICAL_AXES = "logical_axes"
LOGICAL_RULES = "logical_axis_rules"
LOGICAL_MESH = "logical_mesh"
# Set where the names are mesh axes. Rules do not tell: those of logical names may be of each to itself.
OF_MESH_AXES = "names_are_mesh_axes"
_NAME_KEY = str(nnx.PARTITION_NAME)


class Partitioned(nnx.VariableMetadata[Any], AxisMetadata[Any]):
    """``linen.Partitioned``: a value, and one mesh axis (or several, or None) per dimension."""

    _fields: ClassVar[tuple[str, ...]] = ("names", "mesh")

    def __init__(self, value: Any, names: Sequence[Any], mesh: AnyMesh | None = None) -> None:
        super().__init__(value, metadata=_metadata_of_axes(names, mesh))

    @property
    def value(self) -> Any:
        """The boxed value."""
        return self.raw_value

    @property
    def names(self) -> tuple[Any, ...]:
        """A name, several or None per dimension."""
        return tuple(self.metadata[LOGICAL_AXES])

    @property
    def mesh(self) -> AnyMesh | None:
        """The mesh that the box is bound to."""
        return self.metadata.get(LOGICAL_MESH)

    @property
    def rules(self) -> Rules | None:
        """The rules of the box's own; for mesh axes, each to itself."""
        return self.metadata.get(LOGICAL_RULES)

    def replace(self, **changes: Any) -> Self:
        """A box with other ``value``, ``names``, ``mesh`` (or ``rules``)."""
        fields = {"value": self.value} | {name: getattr(self, name) for name in self._fields}
        return type(self)(**{**fields, **changes})

    def unbox(self, apply_constraint: bool = True) -> Any:
        """The value, constrained by its names under a mesh."""
        mesh = ambient_mesh() if self.mesh is None else self.mesh
        if not apply_constraint or mesh is None:
            return self.value
        return constrain(self.value, self.names, self.rules, mesh, misfit="pad")

    def replace_boxed(self, val: Any) -> Self:
        """The box around another value."""
        return self.replace(value=val)

    def add_axis(self, index: int, params: Mapping[Any, Any]) -> Self:
        """The box of a stack: the name of its axis, ``params[PARTITION_NAME]``, at ``index``."""
        names = (*self.names, *[None] * (index - len(self.names)))
        return self.replace(names=(*names[:index], _stack_name(self, params), *names[index:]))

    def remove_axis(self, index: int, params: Mapping[Any, Any]) -> Self:
        """The box of one layer of a stack."""
        name = _stack_name(self, params)
        if self.names[index : index + 1] != (name,):
            raise ValueError(f"expected the axis {name!r} at {index} of {self.names}")
        return self.replace(names=(*self.names[:index], *self.names[index + 1 :]))

    def get_partition_spec(self) -> PartitionSpec:
        """The names as a PartitionSpec, not resolved."""
        return PartitionSpec(*self.names)

    def get_sharding(self, mesh: AnyMesh) -> NamedSharding:
        """The names taken for mesh axes, as Linen's method takes them."""
        return NamedSharding(mesh, self.get_partition_spec())

    def to_nnx_metadata(self) -> dict[str, Any]:
        """What ``nnx.bridge.ToNNX`` makes a variable of: the value and the variable's metadata."""
        return {"value": self.value, **self.metadata}

    @classmethod
    def from_nnx_metadata(cls, metadata: Mapping[str, Any]) -> Self:
        """The box of such a variable, which ``ToNNX`` hands to the Linen module."""
        keys = {"names": LOGICAL_AXES, "mesh": LOGICAL_MESH, "rules": LOGICAL_RULES}
        fields: dict[str, Any] = {name: metadata.get(keys[name]) for name in cls._fields}
        return cls(metadata["value"], **fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r}, names={self.names!r})"

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        """Linen's boxes count: ``isinstance(x, Partitioned)`` is asked of either."""
        if not issubclass(kind, _LinensBox):
            return NotImplemented
        return "rules" not in cls._fields or hasattr(kind, "rules") or NotImplemented


class LogicallyPartitioned(Partitioned):
    """``linen.LogicallyPartitioned``: a value, and a logical name (or None) per dimension."""

    _fields: ClassVar[tuple[str, ...]] = ("names", "mesh", "rules")

    def __init__(
        self,
        value: Any,
        names: Sequence[Any],
        mesh: AnyMesh | None = None,
        rules: Rules | None = None,
    ) -> None:
        nnx.VariableMetadata.__init__(self, value, metadata=_metadata(names, mesh, rules))


def _metadata(names: Sequence[Any], mesh: AnyMesh | None, rules: Rules | None) -> dict[str, Any]:
    found: dict[str, Any] = {LOGICAL_AXES: tuple(names)}
    if rules is not None:
        found[LOGICAL_RULES] = tuple(tuple(one) if isinstance(one, list) else one for one in rules)
    if mesh is not None:
        found[LOGICAL_MESH] = mesh
    return found


def _metadata_of_axes(names: Sequence[Any], mesh: AnyMesh | None) -> dict[str, Any]:
    """Of mesh axes: each has a rule of its own, to itself."""
    rules = tuple((name, name) for name in names if isinstance(name, str))
    return {**_metadata(names, mesh, rules), OF_MESH_AXES: True}


def metadata_of(box: AxisMetadata[Any]) -> dict[str, Any]:
    """The metadata of the variable that holds a box's value; none of a box without names.

    Boxes of Linen are taken as the boxes here.
    """
    names, mesh = getattr(box, "names", None), getattr(box, "mesh", None)
    if names is None:
        return {}
    if isinstance(box, Partitioned) and not isinstance(box, LogicallyPartitioned):
        return _metadata_of_axes(names, mesh)
    return _metadata(names, mesh, getattr(box, "rules", None))


def _stack_name(box: Partitioned, params: Mapping[Any, Any]) -> Any:
    if _NAME_KEY not in params:
        raise ValueError(
            f"a value with names {box.names} is stacked: expected the name of the new axis in "
            f"metadata_params={{nnx.PARTITION_NAME: ...}}, found {dict(params)}"
        )
    return params[_NAME_KEY]


def _register(kind: type[Partitioned]) -> None:
    def with_keys(box: Partitioned) -> tuple[Any, Any]:
        rest = tuple(getattr(box, name) for name in kind._fields)
        return ((GetAttrKey("value"), box.value),), rest

    def build(rest: tuple[Any, ...], children: Any) -> Partitioned:
        (value,) = children
        return kind(value, *rest)

    register_pytree_with_keys(kind, with_keys, build)


_register(Partitioned)
_register(LogicallyPartitioned)


def boxed(variable: nnx.Variable[Any]) -> Any:
    """The value of a variable, in a box if the variable has names."""
    names = annotation(variable.get_metadata()).names
    value, metadata = variable.get_value(), variable.get_metadata()
    if not isinstance(names, tuple):
        return value
    mesh = metadata.get(LOGICAL_MESH)
    if metadata.get(OF_MESH_AXES):
        return Partitioned(value, names, mesh)
    return LogicallyPartitioned(value, names, mesh, metadata.get(LOGICAL_RULES))


def unbox(tree: Any) -> Any:
    """``linen.unbox``: the tree without boxes; under a mesh values are constrained by their names."""
    return map_axis_meta(lambda box: unbox(box.unbox()), tree)


def replace_boxed(tree: Any, updates: Any) -> Any:
    """``meta.replace_boxed``: the values of ``updates`` in the boxes of ``tree``."""

    def update(box: Any, value: Any) -> Any:
        if not isinstance(box, AxisMetadata):
            return value
        return box.replace_boxed(replace_boxed(box.unbox(), value))

    return jax.tree.map(update, tree, updates, is_leaf=is_axis_metadata)


def get_partition_spec(tree: Any) -> Any:
    """``linen.get_partition_spec``: names of boxes and of variables; ``P()`` for other arrays.

    The specs hold logical names: resolve them by :func:`logical_to_mesh`. What is no array is None.
    """
    return _leaf_map(_spec, tree)


def get_sharding(tree: Any, mesh: AnyMesh) -> Any:
    """``linen.get_sharding``: the same as NamedShardings; names are taken for mesh axes."""

    def sharding(leaf: Any) -> NamedSharding | None:
        spec = _spec(leaf)
        return None if spec is None else NamedSharding(mesh, spec)

    return _leaf_map(sharding, tree)


def _leaf_map(function: Callable[[Any], Any], tree: Any) -> Any:
    def is_leaf(node: Any) -> bool:
        return isinstance(node, AxisMetadata | nnx.Variable)

    return jax.tree.map(function, tree, is_leaf=is_leaf)


def _spec(leaf: Any) -> PartitionSpec | None:
    if isinstance(leaf, nnx.Variable):
        names = annotation(leaf.get_metadata()).names
        leaf = LogicallyPartitioned(None, names) if isinstance(names, tuple) else leaf.get_value()
    if hasattr(leaf, "get_partition_spec"):
        spec: PartitionSpec = leaf.get_partition_spec()
        return spec
    return PartitionSpec() if hasattr(leaf, "shape") else None
