"""Put an array on a mesh as a spec says: one function for Auto and Explicit axes."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding.resolve import mesh_axes

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


def refuse_no_mesh(mesh: object) -> None:
    """What shards a whole state takes no mesh of the context.

    Raises:
      TypeError: ``mesh`` is no mesh.
    """
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            f"expected a Mesh or an AbstractMesh, found {type(mesh).__name__}: give the mesh, "
            "jax.sharding.get_mesh() for that of jax.set_mesh"
        )


def apply_spec(x: Any, mesh: AnyMesh, spec: PartitionSpec, memory_kind: str | None = None) -> Any:
    """``x`` sharded by ``spec``: ``reshard`` over Explicit axes, a constraint over Auto axes.

    On a mesh that has both, each axis is served as its type asks. An array outside a trace is
    moved. Axes that are Manual (inside ``shard_map``) are not looked at; the spec must not use
    them.

    Raises:
      ValueError: the spec leaves a dimension UNCONSTRAINED though axes are Explicit, puts an Auto
        axis before an Explicit one in a dimension of a traced array, or ``x`` has values and the
        mesh has no devices.
    """
    concrete = _is_concrete(x)
    if concrete and isinstance(mesh, AbstractMesh):
        raise ValueError(
            "expected a mesh with devices for an array with values, found an AbstractMesh: use "
            "jax.set_mesh, or build under nnx.eval_shape"
        )
    explicit = AxisType.Explicit in mesh.axis_types
    if explicit and PartitionSpec.UNCONSTRAINED in spec.partitions:
        raise ValueError(
            f"expected mesh axes or None in every dimension under Explicit axes, found {spec}: "
            "nobody chooses what is UNCONSTRAINED there; name the axes or give None"
        )
    sharding = NamedSharding(mesh, spec, memory_kind=memory_kind)
    if concrete and explicit:
        return jax.device_put(x, sharding)
    if not explicit:
        x = jax.lax.with_sharding_constraint(x, sharding)
    elif AxisType.Auto in mesh.axis_types:
        x = _by_both(x, *_by_axis_type(sharding))
    elif not _has_in_type(x, sharding):
        x = jax.sharding.reshard(x, sharding)
    # Neither of these moves a traced array to another memory.
    return x if concrete or not _is_elsewhere(sharding) else jax.device_put(x, sharding)


@partial(jax.jit, static_argnums=(1, 2))
def _by_both(x: jax.Array, explicit: NamedSharding, auto: NamedSharding) -> jax.Array:
    """Under ``jit`` for ``vmap`` and ``grad`` outside one: a constraint there undoes a reshard."""
    y: jax.Array = jax.lax.with_sharding_constraint(jax.sharding.reshard(x, explicit), auto)
    return y


def _by_axis_type(sharding: NamedSharding) -> tuple[NamedSharding, NamedSharding]:
    """The sharding over the Explicit axes of its mesh, and that over its Auto axes.

    Raises:
      ValueError: the second within the first is not the sharding: an Auto axis comes before an
        Explicit one.
    """
    spec = sharding.spec
    kinds = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    explicit, auto = (
        [tuple(axis for axis in mesh_axes(entry) if kinds[axis] is kind) for entry in spec]
        for kind in (AxisType.Explicit, AxisType.Auto)
    )
    for dim, entry in enumerate(spec):
        if mesh_axes(entry) != (*explicit[dim], *auto[dim]):
            raise ValueError(
                f"expected Explicit axes before Auto axes and no others in dimension {dim}, found "
                f"{entry!r} with {kinds}: change the order in the rules, or the axis types"
            )
    return (
        sharding.update(spec=spec.update(partitions=explicit)),
        sharding.update(spec=PartitionSpec(*auto)),
    )


def default_memory(mesh: AnyMesh) -> str:
    """The memory kind in which the mesh's devices put arrays unasked."""
    if isinstance(mesh, AbstractMesh):
        return "device"
    kind: str = mesh.devices.flat[0].default_memory().kind
    return kind


def outside_traces() -> bool:
    """Whether code runs now, rather than being traced."""
    try:
        jax.sharding.get_mesh()
    except ValueError:  # jax's answer inside a trace
        return False
    return True


def _has_in_type(x: Any, sharding: NamedSharding) -> bool:
    """Whether the type of ``x`` says so already: then Linen's constraint adds nothing."""
    type_sharding = jax.typeof(x).sharding
    entries = (*sharding.spec.partitions, *[None] * (x.ndim - len(sharding.spec)))
    same_mesh = type_sharding.mesh == getattr(sharding.mesh, "abstract_mesh", sharding.mesh)
    return bool(same_mesh and type_sharding.spec == sharding.spec.update(partitions=entries))


def _is_elsewhere(sharding: NamedSharding) -> bool:
    return sharding.memory_kind not in (None, default_memory(sharding.mesh))


def _is_concrete(x: Any) -> bool:
    """Whether ``x`` has values now, outside every trace."""
    return isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer) and outside_traces()
