"""How many different keys random numbers are made of in a call: sites that share one are no others.

``constant_key`` gives every draw the same key, so that two layers with one mask and two layers with
two agree. Under real keys the two stacks have other numbers, but as many keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from nnx_migrate.parity.evaluation.constant_key import replaced_keys
from nnx_migrate.parity.programs.compiler_options import QUICKLY

_OPTIONS: dict[str, Any] = {**QUICKLY}
_BASE = jax.extend.random.threefry_prng_impl


def distinct_keys(call: Callable[[Any], Any], operands: Any) -> int:
    """Count the keys that random bits of ``jax.jit(call)(operands)`` come from, each once.

    Lanes and steps of a lift count by the key that each has. What the result does not depend on is
    not made, as in any compiled program: Linen's scan, for one, traces its body more than once.
    """
    found: set[bytes] = set()
    kind = _observing(found)

    def observe(key: Any, _: str) -> Any:
        is_typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        data = jax.random.key_data(key) if is_typed else key
        return jax.random.wrap_key_data(data, impl=kind)

    with replaced_keys(observe):
        run = jax.jit(call).lower(operands).compile(_OPTIONS)
        jax.block_until_ready(run(operands))
        jax.effects_barrier()
    return len(found)


def _observing(key_bytes: set[bytes]) -> Any:
    """A kind of keys like JAX's own which puts the data of those that make bits into ``key_bytes``."""

    def record(data: Any) -> Any:
        key_bytes.update(row.tobytes() for row in np.asarray(data).reshape(-1, *_BASE.key_shape))
        return data

    def bits(data: Any, width: int, shape: tuple[int, ...]) -> Any:
        like = jax.ShapeDtypeStruct(data.shape, data.dtype)
        # Pure, so that it goes where nothing needs its result.
        key_data = jax.pure_callback(record, like, data, vmap_method="broadcast_all")
        return _BASE.random_bits(key_data, width, shape)

    return jax.extend.random.define_prng_impl(
        key_shape=_BASE.key_shape,
        seed=_BASE.seed,
        split=_BASE.split,
        random_bits=bits,
        fold_in=_BASE.fold_in,
        name="observed",
        tag="obs",
    )
