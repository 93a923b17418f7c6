"""Put an array on a mesh as a spec says: one function for Auto and Explicit axes."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

AnyMesh = Mesh | AbstractMesh


def ambient_mesh() -> AnyMesh | None:
    """The mesh of ``jax.set_mesh`` or ``use_abstract_mesh``; None outside both.

    Where devices can be had (under ``jax.set_mesh`` and not in a trace) it is the mesh that has
    them. ``with mesh:`` sets no mesh here, as for Linen (flax 0.12.8, core/meta.py).
    """
    mesh: AbstractMesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return None
    try:
        devices = jax.sharding.get_mesh()
    except ValueError:  # jax's answer inside a trace
        return mesh
    return devices if not devices.empty and devices.abstract_mesh == mesh else mesh


def placed(x: Any, mesh: AnyMesh, spec: PartitionSpec) -> Any:
    """``x`` sharded by ``spec``: ``reshard`` under Explicit axes, a constraint under Auto axes.

    Axes that are Manual (inside ``shard_map``) are not looked at; the spec must not use them.

    Raises:
      ValueError: the axes are partly Auto and partly Explicit, the spec leaves a dimension
        UNCONSTRAINED under Explicit axes, or ``x`` has values and the mesh has no devices.
    """
    kinds = set(mesh.axis_types) - {AxisType.Manual}
    if len(kinds) > 1:
        raise ValueError(
            f"expected a mesh whose axes are all Auto or all Explicit, found {mesh.axis_types}"
        )
    if isinstance(mesh, AbstractMesh) and _is_concrete(x):
        raise ValueError(
            "expected a mesh with devices for an array with values, found an AbstractMesh: use "
            "jax.set_mesh, or build under nnx.eval_shape"
        )
    if kinds != {AxisType.Explicit}:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))
    if PartitionSpec.UNCONSTRAINED in spec.partitions:
        raise ValueError(
            f"expected mesh axes or None in every dimension under Explicit axes, found {spec}: "
            "nobody chooses what is UNCONSTRAINED there; name the axes or give None"
        )
    return jax.sharding.reshard(x, NamedSharding(mesh, spec))


def _is_concrete(x: Any) -> bool:
    """Whether ``x`` has values now, outside every trace."""
    return isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer) and _outside_traces()


def _outside_traces() -> bool:
    try:
        jax.sharding.get_mesh()
    except ValueError:
        return False
    return True
