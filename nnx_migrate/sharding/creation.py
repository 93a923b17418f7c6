"""Create models in shards: the unsharded model exists nowhere, not even on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, Mesh

from nnx_migrate.sharding.context import unsharded_creation
from nnx_migrate.sharding.fitting import Misfit
from nnx_migrate.sharding.named_shardings import construct_named_sharding
from nnx_migrate.sharding.placing import AnyMesh, refuse_no_mesh
from nnx_migrate.sharding.resolve import Rules

M = TypeVar("M")


def create_sharded(
    ctor: Callable[[], M], mesh: Mesh, rules: Rules | None = None, *, misfit: Misfit = "raise"
) -> M:
    """The module that ``ctor`` builds, every array created in its shards.

    ``ctor`` runs abstractly for the shardings, then under ``jax.jit`` with these as
    ``out_shardings``. Both times axes are Auto: under Explicit axes what an initialiser draws is
    replicated by its type, and would be whole on every device before it is resharded. Arrays end
    up on ``mesh`` as given.

    Args:
      ctor: builds the module, its ``nnx.Rngs`` included (``lambda: Model(rngs=nnx.Rngs(0))``); it
        runs in a trace, so it cannot use streams from outside.
      mesh: Auto or Explicit axes, with devices.
      rules, misfit: see :func:`construct_named_sharding`.

    Raises:
      TypeError: the mesh has no devices; :func:`abstract_sharded` needs none.
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"expected a mesh with devices, found {type(mesh).__name__}: abstract_sharded gives "
            "shapes and shardings without devices"
        )
    graphdef, initialise, shardings = sharded_initialiser(ctor, mesh, rules, misfit=misfit)
    model: M = nnx.merge(graphdef, jax.device_put(initialise(), shardings))
    return model


def sharded_initialiser(
    ctor: Callable[[], Any], mesh: AnyMesh, rules: Rules | None = None, *, misfit: Misfit = "raise"
) -> tuple[Any, Any, Any]:
    """What :func:`create_sharded` runs.

    Returns:
      The graphdef of ``ctor``'s module, a jitted function without arguments for its state in
      shards, and the state's shardings on ``mesh``.
    """
    graphdef, abstract = abstract_sharded(ctor, mesh, rules, misfit=misfit)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, abstract)

    def state() -> Any:
        with unsharded_creation(rules, _with_auto_axes(mesh).abstract_mesh):
            return nnx.split(ctor())[1]

    auto = jax.tree.map(lambda one: one.update(mesh=_with_auto_axes(one.mesh)), shardings)
    return graphdef, jax.jit(state, out_shardings=auto), shardings


def abstract_sharded(
    ctor: Callable[[], Any], mesh: AnyMesh, rules: Rules | None = None, *, misfit: Misfit = "raise"
) -> tuple[Any, Any]:
    """Graphdef and abstract state of ``ctor``'s module; every leaf has its NamedSharding.

    Works on an AbstractMesh, and on any number of devices that the machine does not have.

    Raises:
      TypeError: ``mesh`` is none.
    """
    refuse_no_mesh(mesh)
    graphdefs: list[Any] = []

    def state() -> Any:
        graphdef, state = nnx.split(ctor())
        graphdefs.append(graphdef)
        return state

    with unsharded_creation(rules, _with_auto_axes(mesh).abstract_mesh):
        abstract = jax.eval_shape(state)
    shardings = construct_named_sharding(abstract, mesh, rules, misfit=misfit)
    return graphdefs[0], jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        abstract,
        shardings,
    )


def _with_auto_axes(mesh: AnyMesh) -> AnyMesh:
    kinds = (AxisType.Auto,) * len(mesh.axis_names)
    if isinstance(mesh, AbstractMesh):
        return AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=kinds)
    return Mesh(mesh.devices, mesh.axis_names, axis_types=kinds)
