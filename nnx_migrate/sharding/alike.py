"""A traced array sharded like another whose sharding only the compiler knows.

Under Auto axes a traced array's type says nothing about its sharding, so no spec can be read off
it. Shardy can still be told that two values are to be sharded alike (``sdy.sharding_group``); jax
0.10 had ``shard_alike`` for it, jax 0.12 has nothing.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.extend.core import Primitive
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.interpreters import batching, mlir

_GROUP = "sdy.sharding_group"

shard_alike_p = Primitive("nnx_migrate_shard_alike")


@jax.custom_jvp
def shard_alike(x: jax.Array, reference: jax.Array) -> jax.Array:
    """``x``, sharded by the compiler as it shards ``reference``; for arrays of one shape.

    Derivatives pass through without a constraint of their own.
    """
    alike: jax.Array = shard_alike_p.bind(x, reference)
    return alike


shard_alike.defjvps(lambda tangent, *_: tangent, None)


def _batch_rule(args: Any, dims: Any) -> Any:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if isinstance(d, int))
    x, reference = (
        batching.bdim_at_front(one, dim, size) for one, dim in zip(args, dims, strict=True)
    )
    return shard_alike(x, reference), 0


def _lowering_rule(ctx: Any, x: Any, reference: Any) -> list[Any]:
    group = _groups_in(ctx.module_context.module.operation)
    # The barrier makes the result a value of its own: what x is computed from, and constrained
    # to, is not in the group.
    result = stablehlo.OptimizationBarrierOp([x]).results[0]
    sdy.ShardingGroupOp(result, group)
    sdy.ShardingGroupOp(reference, group)
    return [result]


def _groups_in(module: Any) -> int:
    """Number of group marks so far: a fresh id that is the same in every lowering of a program."""
    count = 0

    def visit(op: Any) -> Any:
        nonlocal count
        count += op.operation.name == _GROUP
        return mlir.ir.WalkResult.ADVANCE

    module.walk(visit)
    return count


shard_alike_p.def_impl(lambda x, reference: x)
shard_alike_p.def_abstract_eval(lambda x, reference: x)
batching.primitive_batchers[shard_alike_p] = _batch_rule
# A lowering that jax keeps and repeats would put every pair into the same group.
mlir.register_lowering(shard_alike_p, _lowering_rule, cacheable=False)
