"""``jax.lax.scan`` along any axes, with values that are computed once and shared by all steps.

Behaves as ``flax/core/axes_scan.py`` (flax 0.12.12) does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import traceback_util
from flax.core import broadcast
from jax import core
from jax.extend import linear_util as lu
from jax.interpreters import partial_eval as pe

traceback_util.register_exclusion(__file__)


def loop(
    fn: Callable[..., tuple[Any, Any, Any]],
    *,
    in_axes: Any,
    out_axes: Any,
    check_constancy: bool = True,
    **options: Any,
) -> Callable[..., tuple[Any, Any, Any]]:
    """A scan of ``fn(constants, carry, *xs) -> (constants, carry, ys)``, of the same signature.

    Args:
      fn: the step.
      in_axes: a prefix of ``xs``: the axis to scan along, or ``broadcast`` for a value that every
        step gets whole.
      out_axes: the same of ``ys``: the axis to stack along, or ``broadcast`` for what is the same
        in all steps.
      check_constancy: trace the step once more beforehand for ``constants`` and for outputs that are
        broadcast, which must not depend on the carry or on what is scanned. Without it, ``constants``
        goes in only.
      **options: those of ``jax.lax.scan``.

    Raises:
      ValueError: a shared value depends on the loop, or an output is broadcast without
        ``check_constancy``.
    """
    if not check_constancy and broadcast in jax.tree.leaves(out_axes):
        raise ValueError(
            "nn.scan run with check_constancy_invariants=False does not support broadcast "
            f"non-carry function outputs.  out_axes was given as {out_axes}"
        )

    def run(constants_in: Any, init: Any, *args: Any) -> tuple[Any, Any, Any]:
        xs = jax.tree.map(_to_front, in_axes, args)

        def step(carry: Any, xs: Any) -> tuple[Any, Any, Any]:
            whole = jax.tree.map(lambda a, arg, x: arg if a is broadcast else x, in_axes, args, xs)
            return fn(constants_in, carry, *whole)

        def constants(carry: Any, xs: Any) -> tuple[Any, Any]:
            constants_in, _, ys = step(carry, xs)
            return constants_in, jax.tree.map(
                lambda a, y: y if a is broadcast else (), out_axes, ys
            )

        def body(c: Any, xs: Any) -> tuple[Any, Any]:  # jax's errors name the arguments
            _, c, ys = step(c, xs)
            return c, jax.tree.map(lambda a, y: () if a is broadcast else y, out_axes, ys)

        same: Any = None
        if check_constancy:
            constants_in, same = _independent(constants, init, xs)
        carry, ys = jax.lax.scan(body, init, xs, **options)
        ys = jax.tree.map(_from_front, out_axes, ys)
        if check_constancy:
            ys = jax.tree.map(lambda a, c, y: c if a is broadcast else y, out_axes, same, ys)
        return constants_in, carry, ys

    return run


def _to_front(axis: Any, tree: Any) -> Any:
    if axis is broadcast:
        return ()
    return tree if axis == 0 else jax.tree.map(lambda x: jnp.moveaxis(x, axis, 0), tree)


def _from_front(axis: Any, tree: Any) -> Any:
    if axis is broadcast:
        return ()
    return tree if axis == 0 else jax.tree.map(lambda x: jnp.moveaxis(x, 0, axis), tree)


def _independent(fn: Callable[[Any, Any], Any], carry: Any, xs: Any) -> Any:
    """``fn(carry, one step of xs)`` where no output depends on either, which is what it checks."""
    carry_leaves, xs_leaves = jax.tree.leaves(carry), jax.tree.leaves(xs)
    structure: Any = jax.tree.structure((carry, xs))
    made: list[Any] = []  # the structure of the outputs, once they have been traced

    def flat(*leaves: Any) -> list[Any]:
        leaves_out, tree = jax.tree.flatten(fn(*structure.unflatten(leaves)))
        made.append(tree)
        return leaves_out

    avals = [*map(jax.typeof, carry_leaves), *(_one_step(jax.typeof(x)) for x in xs_leaves)]
    debug = jax.api_util.debug_info("scan", fn, (carry, xs), {})
    jaxpr, _, consts = pe.trace_to_jaxpr_dynamic(lu.wrap_init(flat, debug_info=debug), avals)
    jaxpr, used = pe.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    # Newer jax counts the constants among the inputs that are used or not.
    extra = len(used) - len(avals)
    if any(used[extra:]):
        raise ValueError("broadcasted variable has a data dependency on the scan body.")
    if extra:
        consts = [const for const, is_used in zip(consts, used[:extra], strict=True) if is_used]
    return made[0].unflatten(core.eval_jaxpr(jaxpr, consts))


def _one_step(aval: Any) -> Any:
    spec = aval.sharding.spec
    if spec and spec[0] is not None:
        raise ValueError("Batch dimension in scan `xs` cannot be sharded.")
    sharding = aval.sharding.update(spec=jax.sharding.PartitionSpec(*spec[1:]))
    return aval.update(shape=aval.shape[1:], sharding=sharding)
