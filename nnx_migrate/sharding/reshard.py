"""Give an array the sharding of another one."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, Sharding

from nnx_migrate.sharding.alike import shard_alike
from nnx_migrate.sharding.fitting import fitted
from nnx_migrate.sharding.placing import placed


def reshard_like(x: jax.Array, reference: jax.Array | Sharding) -> jax.Array:
    """``x`` with the sharding of ``reference``: what came in sharded goes out sharded alike.

    Where a sharding is known it is applied: that of an array with values, and under Explicit axes
    that of a traced array's type. Under Auto axes a traced array has none yet; the compiler is told
    to shard ``x`` as it will have sharded ``reference``.

    Args:
      x: an array, traced or not.
      reference: an array, or a sharding.

    Raises:
      ValueError: the sharding does not fit ``x``, or, for a traced reference under Auto axes, the
        shapes differ.
      TypeError: a traced ``x`` with a sharding that names no mesh.
    """
    sharding = _known_sharding(reference)
    if sharding is None:
        assert not isinstance(reference, Sharding)
        if x.shape != reference.shape:
            raise ValueError(
                f"expected the reference's shape {reference.shape} under Auto axes, where a traced "
                f"array has no sharding to read, found {x.shape}"
            )
        return shard_alike(x, reference)
    if isinstance(sharding, NamedSharding):
        spec = fitted(sharding.spec, x.shape, sharding.mesh.shape)
        if isinstance(x, jax.core.Tracer):
            named: jax.Array = placed(x, sharding.mesh, spec)
            return named
        sharding = sharding.update(spec=spec)
    elif isinstance(x, jax.core.Tracer):
        raise TypeError(f"expected a NamedSharding for a traced array, found {sharding}")
    moved: jax.Array = jax.device_put(x, sharding)
    return moved


def _known_sharding(reference: Any) -> Sharding | None:
    """The sharding of a reference as far as it is known now."""
    if isinstance(reference, Sharding):
        return reference
    if not isinstance(reference, jax.core.Tracer):
        found: Sharding = reference.sharding
        return found
    sharding = jax.typeof(reference).sharding
    return sharding if AxisType.Explicit in sharding.mesh.axis_types else None
