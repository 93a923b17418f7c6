"""Create models in shards: the unsharded model exists nowhere, not even on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import jax
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, Mesh

from nnx_migrate.sharding.context import linen_sharding
from nnx_migrate.sharding.fitting import Misfit
from nnx_migrate.sharding.named import construct_named_sharding
from nnx_migrate.sharding.placing import AnyMesh
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
    graphdef, initialise = sharded_initialiser(ctor, mesh, rules, misfit=misfit)
    with jax.set_mesh(_with_auto_axes(mesh)):
        state = initialise()
    shardings = construct_named_sharding(state, mesh, rules, misfit=misfit)
    model: M = nnx.merge(graphdef, jax.device_put(state, shardings))
    return model


def sharded_initialiser(
    ctor: Callable[[], Any], mesh: AnyMesh, rules: Rules | None = None, *, misfit: Misfit = "raise"
) -> tuple[Any, Any]:
    """The graphdef of ``ctor``'s module, and a jitted function without arguments for its state.

    What :func:`create_sharded` calls; to be called, or lowered and compiled, under the mesh with
    Auto axes.
    """
    graphdef, abstract = abstract_sharded(ctor, _with_auto_axes(mesh), rules, misfit=misfit)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, abstract)

    def state() -> Any:
        with linen_sharding(rules, misfit=misfit):
            return nnx.split(ctor())[1]

    return graphdef, jax.jit(state, out_shardings=shardings)


def abstract_sharded(
    ctor: Callable[[], Any], mesh: AnyMesh, rules: Rules | None = None, *, misfit: Misfit = "raise"
) -> tuple[Any, Any]:
    """Graphdef and abstract state of ``ctor``'s module; every leaf has its NamedSharding.

    Works on an AbstractMesh, and on any number of devices that the machine does not have.
    """
    graphdefs: list[Any] = []

    def state() -> Any:
        graphdef, state = nnx.split(ctor())
        graphdefs.append(graphdef)
        return state

    with linen_sharding(rules, _with_auto_axes(mesh), misfit=misfit):
        abstract = jax.eval_shape(state)
    shardings = construct_named_sharding(abstract, mesh, rules, misfit=misfit)
    return graphdefs[0], jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        abstract,
        shardings,
    )


@overload
def _with_auto_axes(mesh: Mesh) -> Mesh: ...
@overload
def _with_auto_axes(mesh: AbstractMesh) -> AbstractMesh: ...
def _with_auto_axes(mesh: AnyMesh) -> AnyMesh:
    kinds = (AxisType.Auto,) * len(mesh.axis_names)
    if isinstance(mesh, AbstractMesh):
        return AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=kinds)
    return Mesh(mesh.devices, mesh.axis_names, axis_types=kinds)
