"""Give an array the sharding of another one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, Sharding

from nnx_migrate.sharding.alike import shard_alike
from nnx_migrate.sharding.fitting import fit_spec
from nnx_migrate.sharding.placing import apply_spec, outside_traces


def reshard_like(x: jax.Array, reference: jax.Array | Sharding) -> jax.Array:
    """``x`` with the sharding of ``reference``: what came in sharded goes out sharded alike.

    Where a sharding is known it is applied: that of an array with values, and under Explicit axes
    that of a traced array's type. Under Auto axes a traced array has none yet; the compiler is told
    to shard ``x`` as it will have sharded ``reference``. It takes only arrays of one shape for that
    (Shardy's ``sharding_group``).

    Args:
      x: an array, traced or not.
      reference: an array, or a sharding.

    Raises:
      ValueError: the sharding does not fit ``x``, or, for a traced reference under Auto axes, the
        shapes differ.
      TypeError: a traced ``x`` with a sharding that names no mesh.
    """
    if isinstance(reference, jax.core.Tracer):
        sharding = jax.typeof(reference).sharding
        kinds = {*sharding.mesh.axis_types}
        if AxisType.Auto in kinds or AxisType.Explicit not in kinds:
            return _shard_alike(x, reference, sharding)
    else:
        sharding = reference if isinstance(reference, Sharding) else reference.sharding
    if isinstance(sharding, NamedSharding):
        sharding = sharding.update(spec=fit_spec(sharding.spec, x.shape, sharding.mesh.shape))
    if isinstance(x, jax.core.Tracer) or not outside_traces():
        if not isinstance(sharding, NamedSharding):
            raise TypeError(f"expected a NamedSharding for a traced array, found {sharding}")
        named: jax.Array = apply_spec(x, sharding.mesh, sharding.spec, sharding.memory_kind)
        return named
    result: jax.Array = jax.device_put(x, sharding)
    return result


def _shard_alike(x: jax.Array, reference: jax.Array, type_sharding: NamedSharding) -> jax.Array:
    """``x`` as the compiler shards ``reference``, over the Explicit axes as its type says."""
    if x.shape != reference.shape or _physical_shape(x) != _physical_shape(reference):
        raise ValueError(
            f"expected the reference's shape {reference.shape} under Auto axes, where a traced "
            f"array has no sharding to read, and a key for a key, found {x.shape} ({x.dtype} for "
            f"{reference.dtype}): give the reference's NamedSharding, or constrain by names"
        )
    if AxisType.Explicit in type_sharding.mesh.axis_types:
        x = jax.sharding.reshard(x, type_sharding)
    return shard_alike(x, reference)


def _physical_shape(x: jax.Array) -> tuple[int, ...]:
    """Shape with that of an element: a PRNG key is an array of numbers to the compiler."""
    if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return tuple(x.shape)
    return tuple(jax.eval_shape(jax.random.key_data, x).shape)
